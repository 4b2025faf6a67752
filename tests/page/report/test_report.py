"""The report: what is in it, in which order, how large it is, and what never is."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.errors import MissingLibraryError, NoSuchRunError
from nethook.figures.reading import Reading
from nethook.page.report.page import page
from nethook.page.report.report import SIZE, contents
from nethook.runs.writing.writer import RunWriter
from tests.figures.made import LAYERS
from tests.figures.pages import Page
from tests.figures.shared import training


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = nethook.figures.report(training(), tmp_path_factory.mktemp("report") / "report.html")
    return path, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(made):
    return Page(made[1])


def test_it_is_one_file_of_at_most_8_mb(made):
    path, text = made
    assert path.stat().st_size <= SIZE == 8_000_000
    assert list(path.parent.iterdir()) == [path]
    assert "<script src" not in text


def test_the_verdict_is_first_then_findings_overview_and_layers(parsed):
    order = [attrs["id"] for tag, attrs in parsed.elements if tag == "section" and "id" in attrs]
    assert order == ["verdict", "findings", "overview", "layers", "about"]
    assert parsed.text.index("1 error, 1 warning, 1 note") < parsed.text.index("Lower the learning")
    articles = [attrs["id"] for tag, attrs in parsed.elements if tag == "article"]
    assert articles == ["finding-0", "finding-1", "finding-2"]


def test_every_layer_can_be_unfolded(parsed):
    layers = [a for tag, a in parsed.elements if tag == "details" and "data-name" in a]
    assert [attrs["data-name"] for attrs in layers] == [layer[0] for layer in LAYERS]
    assert not any("open" in attrs for attrs in layers)


def test_every_link_leads_somewhere(parsed):
    anchors = {attrs["id"] for _, attrs in parsed.elements if "id" in attrs}
    links = [str(attrs["href"]) for tag, attrs in parsed.elements if tag == "a"]
    assert len(links) > 5
    assert [link for link in links if link[1:] not in anchors or link[0] != "#"] == []


def test_every_figure_has_its_data_and_a_name(parsed):
    drawn = [attrs for _, attrs in parsed.elements if "data-figure" in attrs]
    assert [attrs["data-figure"] for attrs in drawn] == list(parsed.figures)
    assert all(attrs["aria-label"] for attrs in drawn)


def test_heatmaps_are_codes_of_few_columns(parsed):
    cells = [
        trace["cells"]
        for figure in parsed.figures.values()
        for trace in figure["data"]
        if "cells" in trace
    ]
    assert len(cells) > 10
    assert all(cell["shape"][2] <= 600 for cell in cells)


def test_only_the_two_scripts_of_ours_may_run(parsed):
    policy = next(a["content"] for tag, a in parsed.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    run = [attrs for attrs, _ in parsed.scripts if attrs.get("type") != "application/json"]
    assert run == [{}, {}]
    assert policy.count("'sha256-") == 2


def test_a_saved_batch_never_enters_a_report(made):
    _, text = made
    assert "saved" in text  # the event is told
    assert "0.123456789" not in text  # what it holds is not
    assert "secret" not in text
    assert "0.76543" not in text  # nor are snapshots


def test_snapshots_enter_a_report_only_where_they_are_wanted(parsed, tmp_path):
    assert "pictures" not in {attrs.get("id") for _, attrs in parsed.elements}
    path = nethook.figures.report(training(), tmp_path / "a.html", pictures=True)
    text = path.read_text(encoding="utf-8")
    assert "0.123456789" not in text  # batches never do
    with_pictures = Page(text)
    added = {name: figure for name, figure in with_pictures.figures.items() if "snapshots" in name}
    kept = Reading(training()).snapshots
    assert len(added) == len(kept) > 0
    assert set(parsed.figures) == set(with_pictures.figures) - set(added)
    assert all(figure["data"] for figure in added.values())
    assert all(name in with_pictures.text for name in kept)


def test_a_report_with_many_snapshots_keeps_its_size(tmp_path):
    noise = np.random.default_rng(0).normal(size=(1, 12, 16, 16)).astype(np.float32)
    with RunWriter(tmp_path / "a.db") as writer:
        for layer in range(6):
            writer.snapshot(f"conv{layer}", 0, noise)
    one = contents(Reading(tmp_path / "a.db"), 3_000_000, pictures=True)
    (all_of_it,) = (chapter for chapter in one if chapter.anchor == "pictures")
    assert (len(all_of_it.sections), all_of_it.note) == (6, "")
    room = sum(each.size for each in all_of_it.sections)
    few = contents(Reading(tmp_path / "a.db"), room, pictures=True)
    (some,) = (chapter for chapter in few if chapter.anchor == "pictures")
    assert 0 < len(some.sections) < 6
    assert some.note.startswith(f"{6 - len(some.sections)} of 6 layers are left out")


def test_what_ran_is_told_and_what_it_cost(parsed):
    assert "2.1 %" in parsed.text
    assert "AdamW" in parsed.text


def test_a_healthy_run_says_so(tmp_path):
    from tests.figures.made import write_training

    run = write_training(tmp_path / "a.db", 12, findings=[])
    page = Page(nethook.figures.report(run, tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "Not judged" in page.text
    assert "No diagnosis is recorded" in page.text  # nobody has looked
    with RunWriter(run, resume=True) as writer:
        writer.info(diagnosis={"failed": []}, totals={"steps": 300})
    page = Page(nethook.figures.report(run, tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "No diagnosis" not in page.text
    assert {"class": "card verdict good", "id": "verdict", "aria-label": "Verdict"} in [
        attrs for _, attrs in page.elements
    ]


def test_a_run_without_anything_is_a_report_too(tmp_path):
    with RunWriter(tmp_path / "a.db"):
        pass
    made = nethook.figures.report(tmp_path / "a.db", tmp_path / "deep" / "a.html")
    assert "no layers with recorded outputs" in Page(made.read_text(encoding="utf-8")).text


def test_a_run_that_is_being_written_says_so(tmp_path):
    writer = RunWriter(tmp_path / "a.db", flush_every=0.01)
    text = nethook.figures.report(tmp_path / "a.db", tmp_path / "a.html").read_text()
    writer.close()
    assert "was still being written" in text


def test_an_existing_report_is_replaced_and_a_failure_leaves_it(tmp_path, monkeypatch):
    target = tmp_path / "a.html"
    target.write_text("old")
    with pytest.raises(NoSuchRunError):
        nethook.figures.report(tmp_path / "none.db", target)
    assert target.read_text() == "old"
    monkeypatch.setattr(Path, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        nethook.figures.report(training(), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_others_may_read_it_as_any_file(made):
    mask = os.umask(0o022)
    os.umask(mask)
    assert stat.S_IMODE(made[0].stat().st_mode) == 0o666 & ~mask


def test_without_plotly_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'nethook\[ui\]'"):
        nethook.figures.report(training(), tmp_path / "a.html")


@pytest.mark.parametrize("room", [2_000_000, 700_000, 210_000])
def test_it_fits_the_room_there_is(room):
    """With less room there are fewer columns, then layers without figures, and it says so."""
    found = contents(Reading(training()), room)
    assert len(page("training", found, "").encode()) <= room
    (layers,) = (chapter for chapter in found if chapter.anchor == "layers")
    assert len(layers.sections) == len(LAYERS)
    if room < 500_000:
        assert "without figures" in layers.note
        # The layer that a finding names is drawn before the others.
        (named,) = (each for each in layers.sections if 'data-name="block.relu2"' in each.html)
        assert named.figures


def test_endless_texts_and_findings_do_not_make_it_larger(tmp_path):
    with RunWriter(tmp_path / "a.db") as writer:
        for at in range(60):
            writer.add_site(
                f"{at}{'x' * 19_000}", "L" * 19_000, {"shape": [1], "dtype": "d" * 9000}
            )
            writer.add_series(f"{at}{'x' * 19_000}", "outputs")
        text = {name: name * 5000 for name in ("message", "fix", "code")}
        writer.findings([{**text, "severity": "error", "consequences": ["c" * 19_000] * 9}] * 300)
        for at in range(300):
            writer.event("kind", at, "m" * 19_000)
    made = nethook.figures.report(tmp_path / "a.db", tmp_path / "a.html")
    assert made.stat().st_size <= SIZE
    assert "Of 300 findings the first 200 are shown." in made.read_text(encoding="utf-8")
