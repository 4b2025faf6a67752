"""Results as files: data, never code; broken ones are refused with a reason."""

import json

import pytest
import torch

from nethook.errors import ResultError
from nethook.interp.results.files import first_name, read_result, write_result

KIND = "nethook_test"


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "r.json"
    numbers = torch.randn(2, 3)
    write_result(path, KIND, {"a": [1, "x"]}, {"numbers": numbers.T})
    plain, tensors = read_result(path, KIND)
    assert plain == {"a": [1, "x"]}
    assert torch.equal(tensors["numbers"], numbers.T)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.json", "r.safetensors"]


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "r.json"
    with pytest.raises(ResultError, match="cannot be read"):
        read_result(path, KIND)
    path.write_text("[]")
    with pytest.raises(ResultError, match=r"must be a file that this nethook has saved"):
        read_result(path, KIND)
    path.write_text(json.dumps({KIND: 2}))
    with pytest.raises(ResultError, match="'nethook_test': 1; it is not"):
        read_result(path, KIND)
    path.write_text(json.dumps({KIND: 1}))
    path.with_suffix(".safetensors").write_bytes(b"no tensors")
    with pytest.raises(ResultError, match="cannot be read"):
        read_result(path, KIND)


def test_a_folder_that_is_not_there_is_made(tmp_path):
    path = tmp_path / "runs" / "mnist.studies" / "r.json"
    write_result(path, KIND, {"a": 1}, {})
    assert read_result(path, KIND) == ({"a": 1}, {})
    assert first_name(path) == KIND
    with pytest.raises(ResultError, match="cannot be written"):
        write_result(path / "below_a_file" / "r.json", KIND, {}, {})


def test_what_a_file_begins_with(tmp_path):
    path = tmp_path / "r.json"
    for text, name in (("[1]", ""), ("{}", ""), ('{"a": 1, "b": 2}', "a")):
        path.write_text(text)
        assert first_name(path) == name
    path.write_text("{")
    with pytest.raises(ResultError, match="cannot be read"):
        first_name(path)
