"""What a trace was asked for: checked once, with errors that say what to type."""

import pytest
import torch

from nethook.errors import OptionError
from nethook.tracing.keep import Reference
from tests.tracing.asked import options


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"copy": "yes"}, '`copy` must be "lazy", "now" or "reference"; got \'yes\'.'),
        (
            {"dtype": torch.int64},
            "`dtype` must be a floating-point type, such as torch.float32; got torch.int64.",
        ),
        ({"transform": 3}, "`transform` must be a function of one tensor; got 3."),
        (
            {"calls": 0},
            (
                '`calls` must be "all", "last", or how many of the latest calls to keep (1 or '
                "more); got 0."
            ),
        ),
        (
            {"stop": True, "threads": "all"},
            (
                '`stop` must be False with threads="all"; got True. stop=True ends the forward of '
                "one thread: drop it, or trace that thread alone."
            ),
        ),
    ],
)
def test_errors_have_one_form(change, text):
    with pytest.raises(OptionError) as error:
        options(**change)
    assert str(error.value) == text


@pytest.mark.parametrize(("calls", "most"), [("all", None), ("last", 1), (1, 1), (7, 7)])
def test_how_many_calls_are_kept(calls, most):
    assert options(calls=calls).most_calls() == most


@pytest.mark.parametrize("calls", [True, -1, 2.0, None, "first"])
def test_what_is_no_number_of_calls(calls):
    with pytest.raises(OptionError, match="`calls` must be"):
        options(calls=calls)


@pytest.mark.parametrize(
    ("words", "is_reference", "shares"),
    [
        (("lazy", None), False, True),
        (("now", True), False, False),
        (("reference", False), True, True),
    ],
)
def test_new_and_old_words_keep_a_tensor_alike(words, is_reference, shares):
    for copy in words:
        tensor = torch.ones(3)
        kept = options(copy=copy).keep()(tensor)
        assert isinstance(kept, Reference) == is_reference
        held = kept.tensor if is_reference else kept
        assert (torch._C._data_address(held) == torch._C._data_address(tensor)) == shares


def test_kept_tensors_are_moved_and_transformed():
    assert options(dtype=torch.float16).keep()(torch.ones(2)).dtype == torch.float16
    assert options(dtype=torch.float16).keep()(torch.ones(2, dtype=torch.int8)).dtype == torch.int8
    assert options(transform=lambda tensor: tensor.sum().item()).keep()(torch.ones(4)) == 4.0


def test_threads_are_those_of_the_opener_unless_told_otherwise():
    assert options().threads == "own"
    with pytest.raises(OptionError, match="threads"):
        options(threads="some")
