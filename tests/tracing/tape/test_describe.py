"""What a kept value looks like, in a few words."""

import torch

from nethook.tracing.keep import Reference
from nethook.tracing.tape.describe import dtypes, memory, shapes

FLOATS, WHOLE = torch.ones(2, 3), torch.ones(4, dtype=torch.int64)


def test_shapes_of_the_first_two_tensors_are_shown_and_the_rest_counted():
    assert shapes(FLOATS) == "(2, 3)"
    assert shapes({"a": FLOATS, "b": [WHOLE]}) == "(2, 3), (4,)"
    assert shapes((FLOATS, WHOLE, WHOLE, WHOLE)) == "(2, 3), (4,) and 2 more"
    assert shapes(torch.tensor(1.0)) == "()"


def test_what_holds_no_tensor_is_a_dash():
    assert shapes(None) == shapes("text") == shapes([]) == "–"
    assert dtypes({"n": 3}) == ""
    assert memory((1, 2)) == 0


def test_a_nested_tensor_has_parts_instead_of_a_shape():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert shapes(nested) == "nested, 2 parts"


def test_each_type_is_named_once():
    assert dtypes((FLOATS, WHOLE, FLOATS)) == "float32, int64"


def test_bytes_are_those_of_all_tensors_and_references_count_as_tensors():
    assert memory(FLOATS) == 2 * 3 * 4
    assert memory([FLOATS, {"w": WHOLE}]) == 24 + 4 * 8
    assert memory(Reference(WHOLE)) == 32
    assert shapes(Reference(WHOLE)) == "(4,)"
