"""`make golden`: which differences it sees, which it leaves out, and how it finds a release."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from nethook.runs.names import score_name
from nethook.runs.writing.writer import RunWriter
from tools.golden.comparing import compared, keep_common_spans, keep_what_both_measured
from tools.golden.on_purpose import result_of
from tools.golden.recording import contents
from tools.golden.scripts import differences_of
from tools.golden.sources import commit_of


def recorded(**fields: Any) -> dict[str, Any]:
    return {"run.db": {"series": {}, "scalars": {}, "events": [], **fields}}


def windows(**seen_and_mean: tuple[int, float]) -> dict[str, Any]:
    """Windows of two steps each: `a=(2, 0.5)` is one in which both were measured."""
    rows = {
        span: {"steps": 2, "seen": seen, "row": [mean]}
        for span, (seen, mean) in seen_and_mean.items()
    }
    return {"windows": rows}


def left(base: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """The paths that differ when both ran with a budget."""
    keep_what_both_measured(base, here)
    return [path for path, _ in compared(base, here)]


@pytest.mark.parametrize(
    ("base", "here", "paths"),
    [
        ({"a": 1.0}, {"a": 1.0}, []),
        ({"a": float("nan")}, {"a": float("nan")}, []),
        ({"a": 1.0}, {"a": 1.0 + 2**-52}, ["run.a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["run.a[1]"]),
        ({"a": [1, 2]}, {"a": [1]}, ["run.a"]),
        ({"a": 1}, {"b": 1}, ["run.a", "run.b"]),
        ({"a": {"started": 1}}, {"a": {"started": 2}}, []),
        ({"a": 1, "seconds": 2}, {"a": 1}, []),
    ],
)
def test_every_field_is_compared_times_apart(base: object, here: object, paths: list[str]) -> None:
    assert [path for path, _ in compared(base, here)] == paths


def test_with_a_budget_windows_count_that_both_measured() -> None:
    base = recorded(series={"fc outputs train": windows(a=(2, 0.5), b=(1, 9.0), c=(2, 3.0))})
    here = recorded(series={"fc outputs train": windows(a=(2, 0.5), b=(2, 7.0), d=(2, 4.0))})
    assert left(base, here) == []
    base = recorded(series={"fc outputs train": windows(a=(2, 0.5))})
    here = recorded(series={"fc outputs train": windows(a=(2, 0.25))})
    assert left(base, here) == ["run.run.db.series.fc outputs train.windows.a.row[0]"]


def test_spans_of_histograms_count_that_both_have() -> None:
    def run(**spans: list[int]) -> dict[str, Any]:
        return recorded(series={"fc outputs train": {"histograms": spans, "active": {}}})

    base, here = run(a=[1, 2], b=[3, 4]), run(a=[1, 2], c=[3, 4])
    keep_common_spans(base, here)
    assert not [*compared(base, here)]
    base, here = run(a=[1, 2], b=[3, 4]), run(a=[2, 1], c=[3, 4])
    keep_common_spans(base, here)
    paths = [path for path, _ in compared(base, here)]
    where = "run.run.db.series.fc outputs train.histograms.a"
    assert paths == [f"{where}[0]", f"{where}[1]"]


def test_with_a_budget_every_loss_counts_and_norms_where_both_have_them() -> None:
    base = recorded(scalars={"loss:x.py:1": {0: [1.0], 1: [0.5]}, "grad_norm": {0: [2.0]}})
    here = recorded(scalars={"loss:x.py:1": {0: [1.0]}, "grad_norm": {0: [2.5], 1: [1.0]}})
    assert left(base, here) == [
        "run.run.db.scalars.grad_norm.0[0]",
        "run.run.db.scalars.loss:x.py:1.1",
    ]


def test_with_a_budget_the_events_of_thinning_do_not_count() -> None:
    closed, thinned = [7, "closed", "", {}], [4, "thinned", "", {"every": 8}]
    assert left(recorded(events=[thinned, closed]), recorded(events=[closed])) == []
    assert left(recorded(events=[closed]), recorded()) == ["run.run.db.events"]


def test_what_was_changed_on_purpose_is_not_called_equal() -> None:
    reworded = ("run.run.db.findings[0].message", "'a', and 'b' here")
    other = ("run.run.db.findings[0].code", "'a', and 'b' here")
    assert result_of([]) == "equal"
    assert result_of([reworded]) == "changed"
    assert result_of([reworded, other]) == "DIFFERS"


def test_what_is_recorded_besides_is_not_called_equal() -> None:
    added = ("run.run.db.info.examined", "only here")
    lost = ("run.run.db.info.examined", "only in the base")
    other = ("run.run.db.info.models", "only here")
    assert result_of([added]) == "changed"
    assert result_of([lost]) == "DIFFERS"
    assert result_of([added, other]) == "DIFFERS"


def test_answers_of_evaluations_are_recorded_besides_and_are_no_losses(tmp_path: Path) -> None:
    found = []
    for later in (False, True):
        with RunWriter(tmp_path / f"{later}.db") as writer:
            writer.loss("train.py:3", 0, {"kind": "nll_loss"}, "train")
            if later:
                writer.log(score_name("train.py:9"), 0.5, 0)
                writer.loss("train.py:9", 0, {"rows": 64}, "eval")
        whole = contents(tmp_path / f"{later}.db")
        found.append({name: whole[name] for name in ("losses", "scalars", "answers")})
    base, here = found
    differences = list(compared(base, here))
    assert [path for path, _ in differences] == [
        "run.answers.train.py:9 0",
        "run.scalars.accuracy:train.py:9",
    ]
    assert result_of(differences) == "changed"


def test_two_versions_that_record_nothing_are_not_called_equal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tools.golden.scripts.recorded", lambda *_: {})
    assert result_of(differences_of("plain.py", tmp_path, tmp_path, "none")) == "DIFFERS"


def test_a_release_is_found_without_its_tag(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        told = subprocess.run(
            ["git", *settings, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return told.stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "first")
    first = git("rev-parse", "HEAD")
    git("commit", "--quiet", "--allow-empty", "--message", "second")
    assert commit_of("v1", tmp_path, {"v1": first}) == first
    git("tag", "v1")
    assert commit_of("v1", tmp_path, {"v1": first}) == git("rev-parse", "HEAD")
    with pytest.raises(SystemExit, match=r"`base` must be a revision .* got 'v2'\. Fetch it first"):
        commit_of("v2", tmp_path, {"v1": first})
