"""`load_features`: random access, workers, whole columns; broken and hostile folders."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import shutil
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils.data import DataLoader

import nethook
from nethook.errors import (
    FeaturesError,
    NethookError,
    NoSuchFeaturesError,
    NoSuchSiteError,
    NotFeaturesError,
)
from nethook.extracting.shard import read_shard

X = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))
SHARD = "rank-00000-shard-00000.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of three shards, with texts."""
    folder = tmp_path_factory.mktemp("features")
    model = nn.Sequential(nn.Identity(), nn.ReLU())
    batches = [
        (x, torch.arange(len(x)) + 100 * i, [f"ä{i}-{k}" for k in range(len(x))])
        for i, x in enumerate(X.split(5))
    ]
    done = nethook.extract(model, batches, at=["0", "1"], to=folder, shard_mb=0.0007)
    assert done.shards == 2
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "copy"))


def test_rows_at_random(made):
    data = nethook.load_features(str(made))
    for row in (0, 19, 7, -1, -20):
        features, label = data[row]
        assert torch.equal(features["0"], X[row])
        assert torch.equal(features["1"], X[row].relu())
        assert int(label) == 100 * (range(20)[row] // 5) + range(20)[row] % 5
    assert len(data) == 20
    assert data.sites == ("0", "1")
    for row in (20, -21):
        with pytest.raises(IndexError, match=f"row {row} was asked for, and there are 20"):
            data[row]
    assert len(list(data)) == 20  # iterating ends


def test_whole_columns(made):
    data = nethook.load_features(made)
    assert torch.equal(data.tensor("0"), X)
    assert data.ids[6] == "ä1-1"
    with pytest.raises(NoSuchSiteError, match=r"no features of '2' are here. Closest: '0', '1'"):
        data.tensor("2")


def test_what_is_written_to_a_row_does_not_reach_the_file(folder):
    data = nethook.load_features(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    data[0][0]["0"].zero_()
    data.tensor("0").zero_()
    assert torch.equal(data[0][0]["0"], X[0])
    nethook.extract(nn.Sequential(nn.Identity()), [X], at="0", to=folder / "one")
    one = nethook.load_features(folder / "one")
    one.tensor("0").zero_()  # mapped, and yet private
    assert torch.equal(nethook.load_features(folder / "one").tensor("0"), X)
    assert all(path.read_bytes() == content for path, content in before.items())


def test_one_site_without_labels_is_a_tensor(tmp_path):
    nethook.extract(nn.Sequential(nn.Identity()), [X], at="0", to=tmp_path)
    data = nethook.load_features(tmp_path)
    assert torch.equal(data[3], X[3])
    assert data.labels is None
    assert data.tensor("0").data_ptr() == data.tensor("0").data_ptr()  # the mapped file itself


@pytest.mark.parametrize("workers", [0, 2])
def test_as_a_data_set_for_training(made, workers):
    loader = DataLoader(nethook.load_features(made), batch_size=8, num_workers=workers)
    batches = list(loader)
    assert torch.equal(torch.cat([features["0"] for features, _ in batches]), X)
    data = nethook.load_features(made)
    data[0]
    again = pickle.loads(pickle.dumps(data))
    assert len(pickle.dumps(data)) < 20_000  # no tensor travels along
    assert torch.equal(again[5][0]["0"], X[5])


def test_it_shows_what_it_is(made):
    data = nethook.load_features(made)
    assert repr(data).startswith("features of 20 samples in 2 shards, ")
    assert "ids     text" in repr(data)
    assert "<table>" in data._repr_html_()
    assert json.loads(json.dumps(data.to_dict()))["rows"] == 20
    assert data.setup["at"] == ["0", "1"]


def test_where_there_is_nothing(tmp_path):
    with pytest.raises(NoSuchFeaturesError, match="there is no folder"):
        nethook.load_features(tmp_path / "none")
    with pytest.raises(NoSuchFeaturesError, match=r"holds no features: it has no index.json"):
        nethook.load_features(tmp_path)


# -- broken and hostile ---------------------------------------------------------------------------


def change_index(folder: Path, change) -> None:
    index = json.loads((folder / "index.json").read_text())
    change(index)
    (folder / "index.json").write_text(json.dumps(index))


def refused(folder: Path, said: str) -> None:
    with pytest.raises(NotFeaturesError, match=said):
        nethook.load_features(folder)


@pytest.mark.parametrize(
    "name",
    [
        f"../{SHARD}",
        f"/tmp/{SHARD}",
        f"sub/{SHARD}",
        f"{SHARD}\n",
        f"{SHARD}\0",
        "index.json",
        "",
        None,
        7,
        "rank-٠0000-shard-00000.safetensors",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(folder, name):
    shutil.copy(folder / SHARD, folder.parent / SHARD)
    change_index(folder, lambda index: index["shards"][0].update(file=name))
    refused(folder, "which is not the name of a shard")


def test_a_link_is_refused(folder):
    (folder / SHARD).rename(folder.parent / "elsewhere")
    (folder / SHARD).symlink_to(folder.parent / "elsewhere")
    refused(folder, "not a file of its own but a link")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda i: i.update(nethook_features=2), "is of version 2; this nethook reads 1"),
        (lambda i: i.pop("nethook_features"), "lacks the field 'nethook_features'"),
        (lambda i: i.pop("rows"), "exactly the fields"),
        (lambda i: i.update(more=1), "exactly the fields"),
        (lambda i: i.update(setup=[]), "must be mappings"),
        (lambda i: i["columns"].pop("index"), "lacks the column 'index'"),
        (lambda i: i["columns"].update(x={"dtype": "F31", "shape": []}), "does not exist"),
        (lambda i: i["columns"].update(x={"dtype": "F32", "shape": [-1]}), "does not exist"),
        (lambda i: i["columns"].update(x={"dtype": "F32", "shape": [3]}), "'x' is not the float32"),
        (lambda i: i["columns"].pop("labels"), "'labels' is not in the index"),
        (lambda i: i["columns"].update(ids={"dtype": "I64", "shape": []}), "'ids' is not the int"),
        (lambda i: i.update(shards=None), "lacks its list of shards"),
        (lambda i: i["shards"].append(i["shards"][0]), "names a shard twice"),
        (lambda i: i["shards"][0].pop("rows"), "without file, rows and bytes"),
        (lambda i: i["shards"][0].update(rows=-1), "valid number of rows and bytes"),
        (lambda i: i["shards"][0].update(rows=True), "valid number of rows and bytes"),
        (lambda i: i["shards"][0].update(bytes=1), "and the index says 1"),
        (lambda i: i.update(rows=10**30), "no valid number of rows"),
        (lambda i: i.update(rows=3), "counts 3 rows, and its shards 20"),
        (lambda i: i.update(rows=3, order="index"), "counts 3 rows, and the shards hold 20"),
        (lambda i: i.update(order="other"), "no valid number of rows"),
    ],
)  # fmt: skip
def test_an_index_that_is_wrong(folder, change, said):
    change_index(folder, change)
    refused(folder, said)


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"null", b"NaN"])
def test_an_index_that_is_no_index(folder, text):
    (folder / "index.json").write_bytes(text)
    refused(folder, "not an index")


def header_of(path: Path) -> tuple[dict, bytes]:
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def rewrite(path: Path, header: object, data: bytes) -> None:
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda h: h["labels"].update(data_offsets=[0, 8]), "do not agree"),
        (lambda h: h["labels"].update(shape=[2**40]), "do not agree"),
        (lambda h: h["labels"].update(shape=[2**63]), "no valid shape"),
        (lambda h: h["labels"].update(shape=[-10]), "no valid shape"),
        (lambda h: h["labels"].update(shape=[]), "no valid shape"),
        (lambda h: h["labels"].update(shape="ab"), "no valid shape"),
        (lambda h: h["labels"].update(shape=[1.0]), "no valid shape"),
        (lambda h: h["labels"].update(dtype="X9"), "unknown type"),
        (lambda h: h["labels"].update(dtype=["I64"]), "unknown type"),
        (lambda h: h["labels"].update(extra=1), "does not describe 'labels'"),
        (lambda h: h.update(labels=None), "does not describe 'labels'"),
        (lambda h: h.update(twin=dict(h["labels"])), "overlap or leave a gap"),
        (lambda h: h.pop("labels"), "overlap or leave a gap|its header counts"),
        (lambda h: h.update(__metadata__={"a": 1}), "are not texts"),
        (lambda h: h.update(__metadata__=3), "are not texts"),
    ],
)  # fmt: skip
def test_a_shard_that_is_wrong(folder, change, said):
    header, data = header_of(folder / SHARD)
    change(header)
    rewrite(folder / SHARD, header, data)
    refused(folder, said)


@pytest.mark.parametrize("cut", [0, 4, 8, 100, -1])
def test_a_shard_that_is_cut_off(folder, cut):
    content = (folder / SHARD).read_bytes()
    (folder / SHARD).write_bytes(content[:cut])
    refused(folder, "cut off|not a shard")


def test_a_shard_that_is_gone_or_too_long_or_no_file(folder):
    content = (folder / SHARD).read_bytes()
    (folder / SHARD).write_bytes(content + b"x")
    refused(folder, "its header counts")
    (folder / SHARD).unlink()
    refused(folder, "not a shard of features: .*No such file")
    (folder / SHARD).mkdir()
    refused(folder, "a link or a folder")
    (folder / SHARD).rmdir()
    (folder / SHARD).write_bytes(struct.pack("<Q", 2**62) + content[8:])
    refused(folder, "it has no header")


def test_texts_that_point_outside_of_their_shard(folder):
    for ends in ([-5, 3], [3, 10**12], [5, 2]):
        header, data = header_of(folder / SHARD)
        start = header["ids.ends"]["data_offsets"][0]
        bad = data[:start] + struct.pack("<2q", *ends) + data[start + 16 :]
        rewrite(folder / SHARD, header, bad)
        found = nethook.load_features(folder)
        with pytest.raises(NotFeaturesError, match="lies outside of its shard"):
            found.ids


def read_all(folder: Path) -> None:
    data = nethook.load_features(folder)
    for site in data.sites:
        data.tensor(site)
    data.labels, data.ids, data.numbers, repr(data)
    for row in range(0, min(len(data), 30), 7):
        data[row]


def test_fuzz(made, tmp_path):
    """Whatever is done to the bytes, it is read, or refused with an error of nethook's."""
    chance = random.Random(0)
    files = {path.name: path.read_bytes() for path in made.iterdir()}
    folder = tmp_path / "f"
    folder.mkdir()
    outcomes = {"read": 0, "refused": 0}
    for _ in range(600):
        for name, content in files.items():
            (folder / name).write_bytes(content)
        name = chance.choice(["index.json", SHARD])
        content = bytearray(files[name])
        reach = len(content) if name == "index.json" else 8 + struct.unpack("<Q", content[:8])[0]
        for _ in range(chance.choice([1, 1, 3])):
            at = chance.randrange(reach)
            kind = chance.randrange(4)
            if kind == 0:
                content[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                content[at : at + chance.randrange(1, 9)] = b""
            elif kind == 2:
                content[at:at] = chance.choice([b"0", b"-", b"9" * 30, b'"', b"{", b"\0"])
            else:
                content[at] = ord(chance.choice("0123456789-[]{},:e"))
        (folder / name).write_bytes(content)
        try:
            read_all(folder)
            outcomes["read"] += 1
        except NethookError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 10, outcomes


HOSTILE = [None, -1, 0, 2**63, 10**40, 1.5, "", "../..", "\0", [], {}, [[]], True]


def test_fuzz_of_the_index_value_by_value(made, tmp_path):
    """Each value of the index, in turn, replaced by each of a set that no index has."""
    folder = Path(shutil.copytree(made, tmp_path / "f"))
    whole = json.loads((made / "index.json").read_text())

    def places(value, path=()):
        yield path
        if isinstance(value, dict | list):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for key, child in pairs:
                yield from places(child, (*path, key))

    for path in [path for path in places(whole) if path and path[0] != "setup"]:
        for hostile in HOSTILE:
            index = copy.deepcopy(whole)
            inside = index
            for key in path[:-1]:
                inside = inside[key]
            if type(inside[path[-1]]) is type(hostile) and inside[path[-1]] == hostile:
                continue
            inside[path[-1]] = hostile
            (folder / "index.json").write_text(json.dumps(index))
            with pytest.raises(NotFeaturesError):
                read_all(folder)


def test_the_reader_agrees_with_safetensors(tmp_path):
    """A second implementation: what that library writes is read here, to the last byte."""
    kinds = [torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.float64, torch.uint16]
    tensors = {
        str(dtype): torch.arange(6 * (n + 1)).reshape(6, n + 1).to(dtype)
        for n, dtype in enumerate(kinds)
    }
    save_file(tensors, tmp_path / "a.safetensors", metadata={"some": "text"})
    shard = read_shard(tmp_path / "a.safetensors")
    assert shard.about == {"some": "text"}
    mapped = shard.map()
    assert mapped.keys() == tensors.keys()
    for name, tensor in load_file(tmp_path / "a.safetensors").items():
        assert torch.equal(mapped[name].view(torch.uint8), tensor.view(torch.uint8))
        assert mapped[name].shape == tensors[name].shape


# -- what a name stands for -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index.json", SHARD])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_something_else_than_a_file_is_refused_at_once(folder, name, kind):
    """A pipe would have waited for ever."""
    (folder / name).rename(folder.parent / "elsewhere")
    if kind == "pipe":
        os.mkfifo(folder / name)
    elif kind == "folder":
        (folder / name).mkdir()
    else:
        (folder / name).symlink_to(folder.parent / "elsewhere")
    refused(folder, "pipe|folder|link")


def test_an_index_of_holes_is_not_read(folder):
    with (folder / "index.json").open("r+b") as stream:
        stream.truncate(1 << 40)
    refused(folder, "larger than 64,000,000 bytes")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "no/such/folder"])
def test_a_folder_that_cannot_be(tmp_path, name):
    with pytest.raises(FeaturesError):
        nethook.load_features(tmp_path / name)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "file/x"])
def test_nothing_is_extracted_into_a_folder_that_cannot_be(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(FeaturesError, match="cannot be made"):
        nethook.extract(nn.Sequential(nn.Identity()), [X], at="0", to=tmp_path / name)


def test_the_lock_of_an_extraction_is_no_link(tmp_path):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "rank-00000.lock").symlink_to(tmp_path / "made")
    with pytest.raises(FeaturesError, match="nothing can be written into"):
        nethook.extract(nn.Sequential(nn.Identity()), [X], at="0", to=tmp_path / "to")
    assert not (tmp_path / "made").exists()
