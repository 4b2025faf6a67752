"""A run for other programs: what they read is what was written."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import nethook
from nethook.errors import MissingLibraryError, OptionError
from nethook.exporting.export import export
from tests.figures.made import FINDINGS, write_training
from tests.figures.shared import training


@pytest.fixture(scope="module")
def run():
    return nethook.open_run(training())


def test_csv_has_every_number(run, tmp_path):
    files = {path.stem: path for path in export(run, "csv", tmp_path / "out")}
    assert set(files) == {"series", "scalars", "loss_curves", "sites", "events", "findings"}
    with files["series"].open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    mine = [
        r for r in rows if (r["address"], r["quantity"], r["phase"]) == ("fc1", "outputs", "train")
    ]
    series = run.series("fc1")
    assert [int(row["last_step"]) for row in mine] == series.last_step.tolist()
    np.testing.assert_array_equal([float(row["mean"]) for row in mine], series["mean"])
    with files["findings"].open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    assert [row["code"] for row in found] == [finding["code"] for finding in FINDINGS]
    assert json.loads(found[0]["evidence"]) == FINDINGS[0]["evidence"]


def test_parquet_has_the_same(run, tmp_path):
    files = {path.stem: path for path in export(run, "parquet", tmp_path / "out")}
    table = pq.read_table(files["series"]).to_pydict()
    keys = zip(table["address"], table["quantity"], table["phase"], strict=True)
    places = [at for at, key in enumerate(keys) if key == ("conv1.bias", "updates", "train")]
    wanted = run.series("conv1.bias", "updates")["std"]
    np.testing.assert_array_equal([table["std"][at] for at in places], wanted)
    scalars = pq.read_table(files["scalars"]).to_pydict()
    assert scalars["name"].count("val_accuracy") == 4


def test_tensorboard_reads_scalars_and_histograms(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = write_training(tmp_path / "a.db", 8, findings=[])
    run = nethook.open_run(path)
    (file,) = export(path, "tensorboard")
    assert file.parent == tmp_path / "a-tensorboard"
    read = EventAccumulator(str(file), size_guidance={"scalars": 0, "histograms": 0})
    read.Reload()
    points = read.Scalars("outputs/fc1.mean")
    assert [point.step for point in points] == list(range(8))
    np.testing.assert_allclose([p.value for p in points], run.series("fc1")["mean"], rtol=1e-6)
    assert len(read.Scalars("scalars/val_accuracy")) == 1
    assert len(read.Scalars("grad_norm/@loop")) == 8
    (first, *_) = read.Histograms("outputs/conv1")
    histograms = run.histograms("conv1")
    assert first.histogram_value.num == histograms.counts[0].sum()
    # Its limits are the upper ends of bins: each count stands for a value just below.
    limits = np.array(first.histogram_value.bucket_limit)
    counts = np.array(first.histogram_value.bucket)
    there = histograms.counts[0] > 0
    np.testing.assert_array_equal(counts[counts > 0], histograms.counts[0][there])
    values = histograms.values[there]
    upper = limits[counts > 0]
    assert (values <= upper).all()
    assert (values[values > 0] > 0.83 * upper[values > 0]).all()
    assert np.all(np.diff(limits) >= 0)


def test_a_format_that_nobody_knows(run):
    with pytest.raises(OptionError, match="`to` must be one of csv, parquet, tensorboard; got 'x'"):
        export(run, "x")


def test_nothing_is_written_over(run, tmp_path):
    (tmp_path / "mine").write_text("x")
    for target in (tmp_path, tmp_path / "mine"):
        with pytest.raises(OptionError, match="`folder` must be new or empty; got"):
            export(run, "csv", target)


@pytest.mark.parametrize(
    ("to", "module"), [("parquet", "pyarrow"), ("tensorboard", "torch.utils.tensorboard")]
)
def test_without_its_library_it_says_what_to_install(run, tmp_path, monkeypatch, to, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'nethook\[export\]'"):
        export(run, to, tmp_path / "out")
