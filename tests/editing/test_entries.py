"""The arguments of an edit, read as entries: what is accepted, and when an entry applies."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import nethook
from nethook import edits
from nethook.addresses.paths import parse_path
from nethook.editing.entries import Entry, read, show_pattern
from nethook.errors import EditError, InPlaceEditError


def same(value):
    return value


def test_entries_come_in_the_order_in_which_they_were_written():
    entries = read("outputs", {"a": same, "b": [same, edits.zero()], "c": {"[0]": same, "": same}})
    assert [entry.what for entry in entries] == [
        "outputs['a']",
        "outputs['b']",
        "outputs['b']",
        "outputs['c']['[0]']",
        "outputs['c']",
    ]
    assert read("outputs", None) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [same],
            (
                "`outputs` must be a mapping from a pattern to an edit; got list. Write "
                "outputs={'fc1': edits.scale(0.5)}."
            ),
        ),
        (
            {"fc1": 3},
            (
                "An edit must be a function or one of nethook.edits; got int at 'fc1'. To put a "
                "fixed value there, write edits.replace(value)."
            ),
        ),
        (
            {"fc1": [edits.scale]},
            (
                "An edit must be a function or one of nethook.edits; got the class edits.scale at "
                "'fc1'. Call it: edits.scale(...)."
            ),
        ),
    ],
)
def test_what_is_no_edit_is_refused(given, message):
    with pytest.raises(EditError) as caught:
        read("outputs", given)
    assert str(caught.value) == message


def test_patterns_are_shown_as_they_are_typed():
    assert show_pattern("fc*") == "'fc*'"
    assert show_pattern(re.compile("fc")) == "re.compile('fc')"
    assert show_pattern(nn.ReLU) == "ReLU"
    assert show_pattern(nn.Identity()) == "Identity"
    assert show_pattern(same) == "same"


bounds = st.none() | st.integers(0, 12)


@given(bounds, bounds, st.none() | st.integers(1, 4))
def test_a_slice_of_calls_means_what_it_means_for_a_list(start, stop, step):
    entry = Entry("outputs", "fc1", (), edits.add(1, calls=slice(start, stop, step)))
    zero = torch.zeros(1)
    applied = [call for call in range(15) if entry.change(zero, "fc1", call) is not zero]
    assert applied == list(range(15))[start:stop:step]
    assert (entry.seen, entry.fired) == (15, len(applied))


def test_at_a_path_the_rest_of_the_value_stays():
    entry = Entry("outputs", "lstm", parse_path("[1][0]"), lambda tensor: tensor * 2)
    first, last = torch.ones(1), torch.ones(2)
    value = (first, [torch.ones(3), last])
    new = entry.on(value, "lstm", 0)
    assert new[0] is first
    assert new[1][1] is last
    assert new[1][0].tolist() == [2, 2, 2]
    assert value[1][0].tolist() == [1, 1, 1]
    assert entry.means(value, parse_path("[1][0]"), "lstm")
    assert not entry.means(value, parse_path("[0]"), "lstm")
    with pytest.raises(EditError, match=r"outputs\['lstm'\]\['\[1\]\[0\]'\] found no such part"):
        entry.on((first,), "lstm", 0)


def test_no_change_is_the_same_object():
    value = (torch.ones(1), None)
    for function in (same, lambda _: None):
        assert Entry("outputs", "a", (), function).on(value, "a", 0) is value
        assert Entry("outputs", "a", parse_path("[0]"), function).on(value, "a", 0) is value


@pytest.mark.parametrize("value", [torch.ones(2), [torch.ones(2)]], ids=["tensor", "nested"])
def test_a_write_in_place_that_returns_none_is_refused(value):
    def write(value):
        (value[0] if isinstance(value, list) else value).mul_(2)

    with pytest.raises(InPlaceEditError, match="'a' wrote to its argument"):
        Entry("outputs", "a", (), write).change(value, "a", 0)


def test_tensors_of_a_gradient_entry_are_noted():
    entry = Entry("grads", "a", (), same)
    assert not entry.is_without_grad  # nothing was seen yet
    entry.note_tensor(requires_grad=False)
    assert entry.is_without_grad
    entry.note_tensor(requires_grad=True)
    entry.note_tensor(requires_grad=False)
    assert not entry.is_without_grad


def test_an_error_of_an_edit_names_its_site_once() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    wrong = {"0": edits.replace(torch.zeros(7))}
    with (
        pytest.raises(EditError, match=r"^at '0': `value` of replace must have a shape") as caught,
        nethook.edit(model, outputs=wrong),
    ):
        model(torch.zeros(1, 2))
    assert str(caught.value).count("'0'") == 1
