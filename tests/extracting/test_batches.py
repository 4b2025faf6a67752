"""A batch in its parts, in every form a loader may give."""

import pytest
import torch

import nethook
from nethook.errors import InputsError
from nethook.extracting.batches import split_batch

X, Y = torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 2])


def test_a_tensor_is_the_input_and_nothing_else():
    batch = split_batch(X, None)
    assert batch.inputs.args == (X,)
    assert (dict(batch.inputs.kwargs), batch.labels, batch.ids) == ({}, None, None)


@pytest.mark.parametrize("form", [tuple, list])
def test_a_sequence_holds_inputs_then_labels_then_ids(form):
    for length in (1, 2, 3):
        given = (X, Y, ["a", "b", "c"])[:length]
        batch = split_batch(form(given), None)
        assert batch.inputs.args == (X,)
        assert batch.labels is (Y if length > 1 else None)
        assert batch.ids == (["a", "b", "c"] if length > 2 else None)


def test_inputs_that_a_loader_put_in_a_list_are_given_by_position():
    args = split_batch([[X, X + 1], Y], None).inputs.args
    assert [torch.equal(arg, want) for arg, want in zip(args, (X, X + 1), strict=True)] == [
        True
    ] * 2


@pytest.mark.parametrize(("label", "number"), [("labels", "ids"), ("label", "id")])
def test_a_mapping_gives_up_its_labels_and_ids_and_stays_as_it_was(label, number):
    given = {"pixels": X, label: Y, number: [7, 8, 9]}
    batch = split_batch(given, None)
    assert list(batch.inputs.kwargs) == ["pixels"]
    assert batch.labels is Y
    assert batch.ids.tolist() == [7, 8, 9]
    assert list(given) == ["pixels", label, number]


def test_inputs_pass_through_split_and_numbers_become_a_tensor():
    batch = split_batch((X, [1.5, 2.5, 3.5]), lambda pair: (nethook.inputs(x=pair[0]), pair[1]))
    assert batch.inputs.kwargs["x"] is X
    assert torch.equal(batch.labels, torch.tensor([1.5, 2.5, 3.5]))


def test_what_has_no_form_is_told_with_what_to_type():
    with pytest.raises(InputsError) as error:
        split_batch((X, Y, Y, Y), None)
    assert str(error.value) == (
        "`loader` must give a tensor, (inputs, labels), (inputs, labels, ids), or a mapping with "
        "labels under 'labels' and ids under 'ids'; got a tuple of 4. Sort it out with split=, as "
        "in split=lambda batch: (batch[0], batch[2])."
    )
    with pytest.raises(InputsError, match="`split` must return a tensor"):
        split_batch(X, lambda _: {1, 2})


def test_two_names_for_labels_and_labels_of_no_kind_are_refused():
    with pytest.raises(InputsError, match=r"both 'labels' and 'label'. Choose one with split="):
        split_batch({"x": X, "label": Y, "labels": Y}, None)
    with pytest.raises(InputsError, match=r"`labels` must be a tensor, .* got list of int, str."):
        split_batch((X, [1, "two", 3]), None)
    with pytest.raises(InputsError, match=r"`ids` must be .* got dict\."):
        split_batch((X, Y, {}), None)
