"""recursive_copy: every tensor inside, everything else left alone."""

from collections import OrderedDict, namedtuple

import pytest
import torch

from nethook import recursive_copy

Pair = namedtuple("Pair", "a b")


def nested():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    return OrderedDict(one=y, two=[y, (y, Pair(y, None))], three=3)


def test_without_an_option_it_is_the_value_itself():
    value = nested()
    assert recursive_copy(value) is value
    opaque = object()
    assert recursive_copy(opaque, False, False, False) is opaque


@pytest.mark.parametrize("options", [{"clone": True}, {"detach": True}, {"retain_grad": True}])
def test_containers_keep_their_types(options):
    """Old: named tuples, None and numbers raised."""
    value = recursive_copy(nested(), **options)
    assert type(value) is OrderedDict
    assert type(value["two"]) is list
    assert type(value["two"][1][1]) is Pair
    assert value["two"][1][1].b is None
    assert value["three"] == 3


def test_detach_and_clone():
    value = nested()
    detached = recursive_copy(value, detach=True)
    assert not detached["two"][1][0].requires_grad
    assert detached["one"].data_ptr() == value["one"].data_ptr()
    cloned = recursive_copy(value, clone=True)
    assert cloned["one"].requires_grad
    assert cloned["one"].data_ptr() != value["one"].data_ptr()


@pytest.mark.parametrize("clone", [True, False])
def test_retain_grad_beats_detach(clone):
    """Old: with clone=True the tensor returned was not the one that kept its gradient."""
    x = torch.ones(2, requires_grad=True)
    kept = recursive_copy(x * 2, clone=clone, detach=True, retain_grad=True)
    (kept * 3).sum().backward()
    assert torch.equal(kept.grad, torch.full((2,), 3.0))
    assert torch.equal(x.grad, torch.full((2,), 6.0))


def test_retain_grad_passes_over_whole_numbers():
    numbers = torch.tensor([1, 2])
    assert recursive_copy((numbers,), retain_grad=True)[0] is numbers
