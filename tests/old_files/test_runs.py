"""Run files of 0.1: every number is what plain torch said of the same training."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import nethook
from tests.old_files import models
from tests.old_files.written import KEPT, RUNS, expected, unpacked

# Runs of which today's rules say something else on purpose, and what. So far there are none.
OTHER_FINDINGS: dict[str, list[str]] = {}


def loss_names(run: nethook.Run) -> list[str]:
    """The lines that a loss was made in, in the order of their appearance."""
    lines = [name for name in run.scalars if name.startswith("loss:")]
    return sorted(lines, key=lambda name: int(name.rpartition(":")[2]))


def check_series(run: nethook.Run, series: dict[str, list[list[float]]], factor: float = 1) -> None:
    """Compare windows of one step with what hooks of torch saw; `factor` is that of gradients."""
    for name, rows in series.items():
        address, quantity, phase = name.split()
        found = run.series(address, quantity, phase)
        assert len(found) == len(rows), name
        if phase == "train":
            assert found.first_step.tolist() == found.last_step.tolist() == list(range(len(rows)))
        times = factor if quantity == "grads" else 1
        for index, (count, zeros, *moments) in enumerate(rows):
            assert (found["count"][index], found["zeros"][index]) == (count, zeros), name
            if not moments:
                assert found["nan"][index] == count, name
                continue
            mean, low, high = (value * times for value in moments)
            extrema = [found["min"][index], found["max"][index]]
            assert extrema == pytest.approx([low, high], rel=1e-9, abs=0), (name, index)
            # Its kernel added float32 numbers in float32, a few at a time.
            tolerance = 1e-7 * max(abs(low), abs(high))
            assert found["mean"][index] == pytest.approx(mean, rel=0, abs=tolerance), (name, index)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_opens_with_its_losses(tmp_path: Path, name: str) -> None:
    told = expected(name)
    by_hand = told.get("losses") or {
        "train": np.mean([rank["losses"]["train"] for rank in told["ranks"]], axis=0)
    }
    with nethook.open_run(unpacked(tmp_path, name)) as run:
        trained = [values for kind, values in by_hand.items() if kind != "eval"]
        for line, values in zip(loss_names(run), trained, strict=True):
            found = run.scalars[line]
            assert found.step.tolist() == list(range(len(found.step)))
            # The script that crashed printed nothing of its last step.
            assert len(found.step) == len(values) + (name == "crashed")
            np.testing.assert_array_equal(found.value[: len(values)], values)
        assert run.info["versions"]["nethook"] == "0.1.0"
        assert repr(run).startswith(f"<Run {str(run.path)!r}: ")
        assert run.sites


@pytest.mark.parametrize("name", [name for name in RUNS if "series" in expected(name)])
def test_every_series_is_what_torch_said(tmp_path: Path, name: str) -> None:
    told = expected(name)
    assert told["series"] or name == "gan"
    with nethook.open_run(unpacked(tmp_path, name)) as run:
        check_series(run, told["series"])
        for scalar, points in told["logged"].items():
            assert run.scalars[scalar].step.tolist() == [step for step, _ in points]
            assert run.scalars[scalar].value.tolist() == [value for _, value in points]


def test_evaluations_and_snapshots(tmp_path: Path) -> None:
    with nethook.open_run(unpacked(tmp_path, "healthy")) as run:
        address = sorted({i.address for i in run.catalogue if i.quantity == "loss"})[-1]
        found = run.series(address, "loss", "eval")["mean"]
        assert found == pytest.approx(expected("healthy")["losses"]["eval"], rel=1e-6)
        first = run.snapshots["0"][0]
        x, _ = models.labelled(96, seed=1)
        with torch.no_grad():
            assert first.step == 0
            assert np.asarray(first.values) == pytest.approx(
                models.classifier()[0](x[:2]).numpy(), abs=1e-6
            )


def test_dead_units_and_histograms(tmp_path: Path) -> None:
    with nethook.open_run(unpacked(tmp_path, "dead")) as run:
        shares = run.units("1").dead_share
        assert set(shares[~np.isnan(shares)]) == {1.0}
        assert run.series("1")["zero_share"] == pytest.approx(np.ones(32))
        weight = models.dead()[0].weight.detach().double().numpy()  # nothing reaches it
        for q in (0.1, 0.9):
            found = run.quantiles("0.weight", "params", q=q)
            exact = np.quantile(weight, q, method="inverted_cdf")
            assert found[0, 0] == pytest.approx(exact, rel=0.09)
        counts = run.histograms("0.weight", "params").counts.sum(axis=1)
        assert set(counts) <= {0, weight.size}  # the last span had not been measured
        assert np.count_nonzero(counts) == len(counts) - 1


def test_two_models_and_two_optimizers(tmp_path: Path) -> None:
    with nethook.open_run(unpacked(tmp_path, "gan")) as run:
        assert set(run.info["models"]) == {"G", "D"}
        assert run.info["totals"]["optimizer_steps"] == {"0": 8, "1": 8}
        for prefix, build in (("G", models.generator), ("D", models.discriminator)):
            for name, parameter in build().named_parameters():
                found = run.series(f"{prefix}.{name}", "params")
                assert found["min"][0] == parameter.min().item()
                assert found["max"][0] == parameter.max().item()


def test_two_ranks(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "ranks")
    with nethook.open_run(path) as run:
        assert [rank.state for rank in run.ranks] == ["finished", "finished"]
        for rank, told in enumerate(expected("ranks")["ranks"]):
            one = run.rank(rank)
            # Gradients are those of the mean of both losses.
            check_series(one, told["series"], factor=1 / 2)
        both = [told["series"]["0 outputs train"] for told in expected("ranks")["ranks"]]
        merged = run.series("0")
        assert merged["count"].tolist() == [one[0] + two[0] for one, two in zip(*both, strict=True)]
        assert merged["min"] == pytest.approx([min(a[3], b[3]) for a, b in zip(*both, strict=True)])
        weight = run.series("0.weight", "params")  # the same in both: it counts once
        assert weight["count"].tolist() == [32] * 10
    path.with_name("ranks.rank1.db").unlink()
    with nethook.open_run(path) as run:
        assert [rank.state for rank in run.ranks] == ["finished", "missing"]


def test_a_killed_run_is_read_from_its_wal_file(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "killed")
    assert path.stat().st_size < path.with_name("killed.db-wal").stat().st_size
    with nethook.open_run(path) as run:
        assert [rank.state for rank in run.ranks] == ["died"]
        assert len(run.series("0")) == 12


@pytest.mark.parametrize("name", RUNS)
def test_the_doctor_says_what_0_1_said(tmp_path: Path, name: str) -> None:
    path = unpacked(tmp_path, name)
    codes = [finding.code for finding in nethook.diagnose(path)]
    assert codes == OTHER_FINDINGS.get(name, expected(name)["codes"])
    with nethook.open_run(path) as run:
        assert [finding["code"] for finding in run.findings] == expected(name)["codes"]


def test_there_are_faults_among_them() -> None:
    assert {code for name in RUNS for code in expected(name)["codes"]} == {
        "dead-units",
        "non-finite",
    }


def test_the_files_are_small_and_say_nothing_of_the_machine_that_wrote_them(
    tmp_path: Path,
) -> None:
    kept = [path for path in KEPT.rglob("*") if path.is_file()]
    assert all(path.stat().st_size < 50_000 for path in kept)
    assert sum(path.stat().st_size for path in kept) < 300_000
    for name in {path.relative_to(KEPT).parts[0].partition(".")[0] for path in kept}:
        unpacked(tmp_path, name)
    for path in tmp_path.rglob("*"):
        held = path.read_bytes() if path.is_file() else b""
        places = set(re.findall(rb"/(?:home|root|Users|work|tmp|var)/[\w.-]+", held))
        assert places <= {b"/tmp/nethook-0.1"}, path
