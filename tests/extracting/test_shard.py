"""One file of features: against the safetensors library, and whole or not at all."""

import json
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from nethook.errors import FeaturesError, NotFeaturesError
from nethook.extracting.shard import (
    DTYPES,
    dtype_code,
    publish,
    read_shard,
    stage,
    stage_shard,
    write_whole,
)

COLUMNS = {
    "bytes": [torch.tensor([1, 2, 3], dtype=torch.uint8)],
    "halves": [torch.ones(2, 3, dtype=torch.float16), torch.zeros(1, 3, dtype=torch.float16)],
    "wide": [torch.arange(6.0, dtype=torch.float64).reshape(3, 2)],
    "none": [torch.empty(3, 0)],
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.safetensors"
    temporary, size = stage_shard(path, COLUMNS, {"about": "ä"})
    publish(temporary, path)
    assert path.stat().st_size == size
    return path


def test_the_library_reads_what_was_written_in_parts(path):
    stored = load_file(path)
    assert sorted(stored) == sorted(COLUMNS)
    for name, parts in COLUMNS.items():
        assert torch.equal(stored[name], torch.cat(parts)), name


def test_a_shard_is_mapped_and_a_write_stays_in_memory(path):
    shard = read_shard(path)
    assert dict(shard.about) == {"about": "ä"}
    before = path.read_bytes()
    tensors = shard.map()
    for name, parts in COLUMNS.items():
        assert torch.equal(tensors[name], torch.cat(parts)), name
    tensors["wide"].zero_()
    assert path.read_bytes() == before
    assert torch.equal(shard.map()["wide"], COLUMNS["wide"][0])


def test_every_tensor_starts_at_a_multiple_of_its_element(path):
    for stored in read_shard(path).tensors.values():
        assert stored.start % stored.dtype.itemsize == 0


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_type_has_the_code_of_the_library(dtype, tmp_path):
    save_file({"x": torch.zeros(2, 2).to(dtype)}, tmp_path / "x.safetensors")
    raw = (tmp_path / "x.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])
    assert header["x"]["dtype"] == dtype_code(dtype)
    assert dtype_code(torch.complex128) is None


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ([], "the header of a.safetensors is not a mapping"),
        ({"__metadata__": {"a": 1}}, "the metadata of a.safetensors are not texts"),
        ({"x": {"dtype": "F32"}}, "does not describe 'x'"),
        ({"x": {"dtype": "F31", "shape": [1], "data_offsets": [0, 4]}}, "unknown type"),
        ({"x": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, "no valid shape"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, "do not agree"),
        ({"x": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}, "leave a gap"),
        ({"x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, "its header counts"),
    ],
)
def test_a_header_that_is_wrong_is_refused(tmp_path, header, said):
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
    with pytest.raises(NotFeaturesError, match=said):
        read_shard(path)


def test_what_is_no_shard_is_refused(tmp_path, path):
    short = tmp_path / "short"
    short.write_bytes(b"\x01")
    with pytest.raises(NotFeaturesError, match="short is cut off or is not a shard"):
        read_shard(short)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(NotFeaturesError, match="not a file of its own but a link"):
        read_shard(link)
    shard = read_shard(path)
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(NotFeaturesError, match="has changed since its header was read"):
        shard.map()


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "index.json"
    write_whole(path, lambda stream: stream.write(b"first"))

    def fails(stream):
        stream.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(FeaturesError, match=r"index\.json cannot be written: the disk is full"):
        write_whole(path, fails)
    assert path.read_bytes() == b"first"
    temporary = stage(path, lambda stream: stream.write(np.arange(3, dtype="u1").data))
    assert path.read_bytes() == b"first"
    publish(temporary, path)
    assert path.read_bytes() == b"\0\1\2"
    assert list(tmp_path.iterdir()) == [path]
