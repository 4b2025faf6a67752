"""The index of a folder: written and read back, joined from parts, sorted as numpy sorts."""

import json

import numpy as np
import pytest
import torch

from nethook.errors import FeaturesError, NoSuchFeaturesError, NotFeaturesError, ResumeError
from nethook.extracting.columns import NUMBERS, Kind
from nethook.extracting.index import (
    INDEX,
    Entry,
    Index,
    find_index,
    join_parts,
    joined,
    make_folder,
    open_shards,
    own_shards,
    part_name,
    read_index,
    shard_name,
    sorted_rows,
    stored_numbers,
    write_index,
)
from nethook.extracting.shard import publish, stage_shard

KINDS = {NUMBERS: Kind(torch.int64)}


def add_shard(folder, rank, number, numbers):
    """A shard that holds nothing but the numbers of its samples."""
    path = folder / shard_name(rank, number)
    column = {NUMBERS: [torch.tensor(numbers, dtype=torch.int64)]}
    temporary, size = stage_shard(path, column, {})
    publish(temporary, path)
    return Entry(path.name, len(numbers), size)


def part(folder, rank, world, numbers, **setup):
    """What one of several processes leaves behind."""
    entry = add_shard(folder, rank, 0, numbers)
    index = Index({"world": world, **setup}, KINDS, (entry,), len(numbers), "stored")
    write_index(folder / part_name(rank), index)


def test_an_index_is_written_and_read_back(tmp_path):
    kinds = {**KINDS, "labels": Kind(None), "features:a": Kind(torch.float32, (3,))}
    entries = (Entry(shard_name(0, 0), 5, 100), Entry(shard_name(0, 1), 2, 60))
    index = Index({"world": 1, "pool": None}, kinds, entries, 7, "stored")
    write_index(tmp_path / INDEX, index)
    assert read_index(tmp_path / INDEX) == find_index(tmp_path) == index
    assert json.loads((tmp_path / INDEX).read_text())["nethook_features"] == 1
    assert [path.name for path in tmp_path.iterdir()] == [INDEX]


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_sorted_as_numpy_does_it(unique, seed):
    numbers = np.random.default_rng(seed).integers(0, 8, size=3 * seed)
    rows = sorted_rows(torch.from_numpy(numbers), unique=unique).tolist()
    expected = np.argsort(numbers, kind="stable").tolist()
    if unique:
        expected = np.unique(numbers, return_index=True)[1].tolist()
    assert rows == expected


def test_rows_that_are_in_order_stay_and_others_are_sorted_by_number(tmp_path):
    first, second = add_shard(tmp_path, 0, 0, [0, 1, 1]), add_shard(tmp_path, 0, 1, [2, 5])
    for setup, entries, order, rows in (
        ({"world": 1}, (first, second), "stored", 5),
        ({"world": 1}, (second, first), "index", 5),  # a sample drawn twice is there twice
        ({"world": 2}, (first, second), "index", 4),  # a sampler repeats to fill up
    ):
        index = joined(tmp_path, setup, KINDS, entries)
        assert (index.order, index.rows) == (order, rows)
    shards = open_shards(tmp_path, Index({}, KINDS, (second, first), 5, "stored"))
    assert stored_numbers(shards).tolist() == [2, 5, 0, 1, 1]
    assert stored_numbers([]).tolist() == []


def test_processes_are_joined_once_all_are_done(tmp_path):
    part(tmp_path, 0, 2, [0, 2, 4])
    assert join_parts(tmp_path) is None
    with pytest.raises(NoSuchFeaturesError, match=r"has not ended\. Call nethook.extract again"):
        find_index(tmp_path)
    part(tmp_path, 1, 2, [1, 3, 0])
    index = find_index(tmp_path)
    assert (index.rows, index.order) == (5, "index")
    assert [entry.file for entry in index.shards] == [shard_name(0, 0), shard_name(1, 0)]


def test_processes_that_differ_are_not_joined(tmp_path):
    part(tmp_path, 0, 2, [0], pool="mean")
    part(tmp_path, 1, 2, [1], pool="max")
    with pytest.raises(ResumeError, match=r"0 and 1 did not extract the same: pool \(mean then"):
        join_parts(tmp_path)
    part(tmp_path, 0, 10**9, [0])
    with pytest.raises(NotFeaturesError, match="does not know how many there are"):
        join_parts(tmp_path)


def test_own_shards_are_those_up_to_the_first_gap(tmp_path):
    for number in (0, 1, 3):
        add_shard(tmp_path, 2, number, [number])
    assert [shard.path.name for shard in own_shards(tmp_path, 2)] == [
        shard_name(2, 0),
        shard_name(2, 1),
    ]
    assert own_shards(tmp_path, 0) == []


def test_a_folder_that_holds_nothing_or_cannot_be_made(tmp_path):
    with pytest.raises(NoSuchFeaturesError, match=r"it has no index\.json"):
        find_index(tmp_path)
    with pytest.raises(NoSuchFeaturesError, match="there is no folder"):
        find_index(tmp_path / "absent")
    make_folder(tmp_path / "new" / "inner")
    make_folder(tmp_path / "new" / "inner")
    assert (tmp_path / "new" / "inner").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(FeaturesError, match="cannot be made"):
        make_folder(tmp_path / "file" / "inner")
