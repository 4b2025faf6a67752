"""Shards of one process: cut by size, continued after a break, and written by one at a time."""

import json

import pytest
import torch

import nethook
from nethook.errors import FeaturesError, FeatureShapeError, ResumeError
from nethook.extracting.batches import Batch
from nethook.extracting.index import shard_name
from nethook.extracting.loader import Delivery
from nethook.extracting.shard import publish, read_shard, stage_shard
from nethook.extracting.shard_writer import Writer, alone

SETUP = {"world": 1, "pool": "mean"}


def batch_of(values, labels=None):
    return Batch(nethook.inputs(values), labels, None)


def add(writer, values, numbers=None, order="", labels=None):
    """One batch whose features are its values."""
    values = torch.tensor(values)
    delivery = Delivery(None, numbers, order)
    return writer.add({"fc": values}, batch_of(values, labels), delivery)


@pytest.fixture
def writer(tmp_path):
    writer = Writer(tmp_path, 0, SETUP, 1e9)
    yield writer
    writer.close()


def test_batches_become_one_shard_with_numbers_and_labels(writer, tmp_path):
    assert add(writer, [1.0, 2.0], [4, 0], "one", torch.tensor([7, 8])) == 2
    assert add(writer, [3.0], [2], "two", torch.tensor([9])) == 1
    writer.flush()
    writer.settle()
    shard = read_shard(tmp_path / shard_name(0, 0))
    tensors = shard.map()
    assert tensors["features:fc"].tolist() == [1, 2, 3]
    assert tensors["labels"].tolist() == [7, 8, 9]
    assert tensors["index"].tolist() == [4, 0, 2]
    about = json.loads(shard.about["nethook_features"])
    assert (about["rows"], about["batches"], about["order"]) == (3, 2, "two")
    assert [(entry.rows, entry.bytes) for entry in writer.entries] == [(3, shard.size)]
    writer.flush()  # nothing is left
    assert len(writer.entries) == 1


def test_without_numbers_rows_are_counted_as_they_arrive(writer, tmp_path):
    add(writer, [1.0, 2.0])
    add(writer, [3.0])
    writer.flush()
    writer.settle()
    assert read_shard(tmp_path / shard_name(0, 0)).map()["index"].tolist() == [0, 1, 2]


def test_a_shard_that_is_full_is_written_before_the_next_batch(tmp_path):
    row = 4 + 8  # a float and a number
    writer = Writer(tmp_path, 3, SETUP, 2 * row)
    for value in range(5):
        add(writer, [float(value)])
    writer.flush()
    writer.settle()
    writer.close()
    assert [(entry.file, entry.rows) for entry in writer.entries] == [
        (shard_name(3, 0), 2),
        (shard_name(3, 1), 2),
        (shard_name(3, 2), 1),
    ]


def test_a_later_writer_goes_on_where_the_first_one_stopped(writer, tmp_path):
    add(writer, [1.0, 2.0], order="one")
    writer.flush()
    writer.settle()
    later = Writer(tmp_path, 0, SETUP, 1e9)
    assert (later.rows, later.batches, later.order) == (2, 1, "one")
    assert (later.kinds, later.entries) == (writer.kinds, writer.entries)
    later.close()
    with pytest.raises(ResumeError, match=r"something else: pool \(mean then, max now\)"):
        Writer(tmp_path, 0, SETUP | {"pool": "max"}, 1e9)


def test_a_shard_of_something_else_is_not_continued(tmp_path):
    path = tmp_path / shard_name(0, 0)
    publish(stage_shard(path, {"x": [torch.zeros(1)]}, {"nethook_features": "{}"})[0], path)
    with pytest.raises(ResumeError, match="is not from an extraction that can be continued"):
        Writer(tmp_path, 0, SETUP, 1e9)


def test_all_rows_must_be_alike(writer):
    add(writer, [[1.0, 2.0]])
    with pytest.raises(FeatureShapeError, match=r"'fc' is float32 \(2,\) .* \(3,\) in batch 1"):
        add(writer, [[1.0, 2.0, 3.0]])
    with pytest.raises(FeatureShapeError, match="batch 1 has 'labels', unlike those before it"):
        add(writer, [[1.0, 2.0]], labels=torch.tensor([1]))
    with pytest.raises(FeatureShapeError, match="the features of 'fc' have 1 rows in a batch of 2"):
        add(writer, [[1.0, 2.0]], numbers=[0, 1])


def test_one_process_at_a_time_and_leftovers_of_a_killed_one_go(tmp_path):
    left = tmp_path / "rank-00000-shard-00000.safetensors.1.tmp"
    other = tmp_path / "rank-00001-shard-00000.safetensors.1.tmp"
    left.touch()
    other.touch()
    with alone(tmp_path, 0, 2):
        assert not left.exists()
        assert other.exists()
        with (
            pytest.raises(FeaturesError, match=r"another process is extracting .*\(rank 0\)"),
            alone(tmp_path, 0, 2),
        ):
            pass
        with alone(tmp_path, 1, 2):  # another rank has files of its own
            assert not other.exists()
    assert list(tmp_path.iterdir()) == []
