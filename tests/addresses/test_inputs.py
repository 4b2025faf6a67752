"""The one convention for inputs."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple

import pytest
import torch

import nethook
from nethook.addresses.inputs import Inputs, as_inputs
from nethook.errors import InputsError

X, MASK = torch.ones(2), torch.zeros(2)


def record(*args: object, **kwargs: object) -> tuple:
    return args, kwargs


@pytest.mark.parametrize(
    ("value", "args", "kwargs"),
    [
        (X, (X,), {}),
        (torch.nn.Parameter(X), None, {}),
        ((X, MASK), (X, MASK), {}),
        ((), (), {}),
        (namedtuple("Batch", "x mask")(X, MASK), (X, MASK), {}),
        ({"x": X, "mask": MASK}, (), {"x": X, "mask": MASK}),
        (OrderedDict(x=X), (), {"x": X}),
        (UserDict(x=X), (), {"x": X}),
        (nethook.inputs(X, mask=MASK), (X,), {"mask": MASK}),
        (nethook.inputs([X]), ([X],), {}),
        (nethook.inputs({1: X}), ({1: X},), {}),
    ],
)
def test_each_form_is_the_call_that_it_stands_for(value, args, kwargs):
    given = as_inputs(value)
    assert type(given.args) is tuple
    expected = (value,) if args is None else args
    seen, named = given.call(record)
    assert len(seen) == len(expected)
    assert all(one is two or one == two for one, two in zip(seen, expected, strict=True))
    assert named.keys() == kwargs.keys()
    assert all(named[name] is kwargs[name] for name in kwargs)


def test_inputs_come_back_as_they_are():
    given = nethook.inputs(X)
    assert as_inputs(given) is given


def test_a_mapping_is_not_held_on_to():
    mapping = {"x": X}
    given = as_inputs(mapping)
    mapping["y"] = X
    assert list(given.kwargs) == ["x"]


def test_a_batch_encoding_holds_keyword_arguments():
    transformers = pytest.importorskip("transformers")
    assert as_inputs(transformers.BatchEncoding({"input_ids": X})).kwargs == {"input_ids": X}


def test_arguments_are_read_by_position_and_by_name():
    given = nethook.inputs(X, MASK, mask=MASK)
    assert given[0] is X
    assert given[-1] is given["mask"] is MASK
    assert len(given) == 3
    assert given == given
    assert given != nethook.inputs(X, MASK, mask=MASK)  # tensors have no one equality
    with pytest.raises(LookupError):
        given["x"]
    with pytest.raises(LookupError):
        given[2]


def test_any_name_can_be_passed():
    assert nethook.inputs(self=1, function=2, args=3).call(record) == (
        (), {"self": 1, "function": 2, "args": 3},
    )  # fmt: skip


def test_inputs_cannot_be_changed():
    with pytest.raises(AttributeError):
        nethook.inputs(X).args = ()
    assert Inputs().args == ()


@pytest.mark.parametrize("value", [[X], None, 3, "text", {X}, iter([X])])
def test_any_other_form_is_refused_with_what_to_type(value):
    with pytest.raises(InputsError) as caught:
        as_inputs(value)
    assert str(caught.value) == (
        "`inputs` must be a tensor, a tuple (positional arguments), a mapping (keyword arguments), "
        f"or nethook.inputs(*args, **kwargs); got {type(value).__name__}. "
        "To pass it as the only argument, write nethook.inputs(value)."
    )
    assert isinstance(caught.value, TypeError)


def test_a_mapping_with_other_keys_is_refused_with_what_to_type():
    with pytest.raises(InputsError) as caught:
        as_inputs({"x": X, 0: X})
    assert str(caught.value) == (
        "`inputs` given as a mapping must have strings as keys, the names of keyword arguments; "
        "got 0 of type int. To pass the mapping itself, write nethook.inputs(mapping)."
    )
