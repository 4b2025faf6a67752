"""Columns of features: their kinds, texts as bytes, and what cannot be stored."""

import pytest
import torch

from nethook.errors import FeatureShapeError, NotFeaturesError
from nethook.extracting.columns import (
    Kind,
    check_stored,
    kind_of,
    read_text,
    storable,
    to_tensors,
)
from nethook.extracting.shard import Stored

TEXTS = ["", "ä", "𝄞 clef", "\udc80 alone", "plain"]


@pytest.mark.parametrize(
    ("kind", "data", "size", "shown"),
    [
        (Kind(None), {"dtype": "text"}, 0, "text"),
        (Kind(torch.float16, (3, 4)), {"dtype": "F16", "shape": [3, 4]}, 24, "float16 (3, 4)"),
        (Kind(torch.int64), {"dtype": "I64", "shape": []}, 8, "int64 ()"),
    ],
)
def test_a_kind_is_plain_data_and_back(kind, data, size, shown):
    assert kind.to_dict() == data
    assert Kind.from_dict(data) == kind
    assert (kind.bytes, str(kind)) == (size, shown)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"dtype": "F31", "shape": []},
        {"dtype": "F32", "shape": [-1]},
        {"dtype": "F32", "shape": [True]},
        {"dtype": ["F32"], "shape": []},
        {"dtype": "F32", "shape": [], "more": 1},
    ],
)
def test_data_that_describe_no_kind(data):
    with pytest.raises(NotFeaturesError, match="a column whose type or shape does not exist"):
        Kind.from_dict(data)


def test_what_a_column_of_a_batch_holds_for_each_sample():
    assert kind_of(["a", "b"]) == Kind(None)
    assert kind_of(torch.zeros(5, 2, 3, dtype=torch.int8)) == Kind(torch.int8, (2, 3))


def test_a_stored_column_is_a_copy_in_one_piece():
    base = torch.arange(12.0, requires_grad=True).reshape(3, 4)
    column = storable(base[:, ::2], "the features", 3)
    assert column.tolist() == [[0, 2], [4, 6], [8, 10]]
    assert column.is_contiguous()
    assert not column.requires_grad
    assert column.untyped_storage().nbytes() == 6 * 4
    texts = ["a", "b"]
    assert storable(texts, "the ids", 2) is texts


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.tensor(3.0), "the labels of a batch are a single number, not one per sample."),
        (torch.zeros(2, 5), "the labels have 2 rows in a batch of 3 samples."),
        (torch.zeros(3, device="meta"), "it is on the meta device, which holds no values."),
        (torch.eye(3).to_sparse(), "it is sparse or nested: make it dense with transform=."),
        (torch.zeros(3, dtype=torch.complex128), "it is of type torch.complex128, which"),
    ],
)
def test_what_cannot_be_stored_says_why(value, said):
    with pytest.raises(FeatureShapeError) as error:
        storable(value, "the labels", 3)
    assert said in str(error.value)


def test_texts_are_bytes_and_ends_and_are_read_back_one_by_one():
    tensors = to_tensors("ids", [TEXTS[:2], TEXTS[2:]])
    encoded = [text.encode("utf-8", "surrogatepass") for text in TEXTS]
    assert bytes(tensors["ids.text"][0].tolist()) == b"".join(encoded)
    assert tensors["ids.ends"][0].tolist() == [sum(map(len, encoded[: k + 1])) for k in range(5)]
    whole = {name: parts[0] for name, parts in tensors.items()}
    assert [read_text(whole, "ids", row) for row in range(5)] == TEXTS
    assert to_tensors("ids", [[""]])["ids.text"][0].numel() == 0


def test_texts_that_point_outside_or_are_no_utf8_are_refused():
    text = torch.tensor([0xC3], dtype=torch.uint8)
    with pytest.raises(NotFeaturesError, match="row 0 is not UTF-8"):
        read_text({"ids.text": text, "ids.ends": torch.tensor([1])}, "ids", 0)
    for ends in ([2], [-1]):
        with pytest.raises(NotFeaturesError, match="outside of its shard"):
            read_text({"ids.text": text, "ids.ends": torch.tensor(ends)}, "ids", 0)


def test_a_shard_is_held_against_the_kinds_that_it_is_to_have():
    kinds = {"x": Kind(torch.float32, (2,)), "ids": Kind(None)}
    right = {
        "x": Stored(torch.float32, (4, 2), 0, 32),
        "ids.text": Stored(torch.uint8, (9,), 0, 9),
        "ids.ends": Stored(torch.int64, (4,), 0, 32),
    }
    assert check_stored(kinds, 4, right) is None
    assert check_stored(kinds, 5, right) == (
        "'x' is not the float32 (2,) of 5 rows that the index promises"
    )
    without = {name: stored for name, stored in right.items() if name != "ids.ends"}
    assert "'ids' is not the text of 4 rows" in check_stored(kinds, 4, without)
    more = {**right, "y": right["x"]}
    assert check_stored(kinds, 4, more) == "'y' is not in the index"
