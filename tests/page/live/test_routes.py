"""From a place to the sections that are shown there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nethook.page.folder import Folder
from nethook.page.live.answers import answer_of, digest_of
from nethook.page.live.routes import Views
from nethook.page.urls import read_place
from tests.figures.shared import training
from tests.page.shown import folder, html_of, opened, text_of
from tests.page.studied import saved


@pytest.fixture(scope="module")
def views() -> Views:
    return Views(folder())


def names(views: Views, path: str, search: str = "") -> list[str]:
    return [section.name for section in views.show(read_place(path, search)).sections]


def test_every_view_has_its_sections(views: Views) -> None:
    run = f"/run/{opened().entry.id}"
    assert names(views, run) == ["state", "verdict", "loop", "layers"]
    assert names(views, f"{run}/layer") == ["state", "layerlist"]
    assert names(views, f"{run}/layer", "?at=conv1") == ["state", "layer", "pictures"]
    assert names(views, f"{run}/layer", "?at=nowhere") == ["state", "layerlist"]
    assert names(views, f"{run}/depth") == ["state", "depth"]
    assert names(views, f"{run}/findings") == ["state", "findings"]
    assert names(views, f"{run}/model") == ["state", "model"]
    assert names(views, f"{run}/health") == ["state", "cost", "ran"]
    assert names(views, "/") == ["state", "runs"]
    assert names(views, "/nowhere") == ["state", "note"]
    assert names(views, f"/run/{opened('broken').entry.id}") == ["state", "note"]


def test_the_state_and_the_last_step_are_said(views: Views) -> None:
    state = views.show(read_place(f"/run/{opened().entry.id}", "")).sections[0]
    assert state.tag == "finished-119"
    assert "finished · step 119" in text_of(state)
    assert 'class="state finished"' in html_of(state)


def shown_for(views: Views, *runs: str) -> str:
    ids = "~".join(opened(name).entry.id for name in runs)
    shown = views.show(read_place("/compare", f"?runs={ids}"))
    return html_of(shown.sections[1]) + text_of(shown.sections[1])


def test_two_runs_are_compared(views: Views) -> None:
    assert "They diverge at step 61" in shown_for(views, "training", "changed")


def test_one_run_alone_asks_for_another(views: Views) -> None:
    shown = shown_for(views, "training")
    assert "They diverge" not in shown
    assert opened("changed").entry.id in shown


def test_a_run_that_cannot_be_read_is_named_and_left_out(views: Views) -> None:
    shown = shown_for(views, "training", "changed", "broken")
    assert "broken (cannot be read)" in shown
    assert "They diverge at step 61" in shown


def test_ids_that_nobody_has_are_left_out(views: Views) -> None:
    assert names(views, "/compare", "?runs=nobody~nothing") == ["state", "few"]


def test_what_can_be_chosen_is_read_ahead_of_a_run_that_has_ended(views: Views) -> None:
    place = read_place(f"/run/{opened().entry.id}", "")
    views.read_rest(place)
    reading = opened().reading
    assert reading is not None
    assert {name for name, _ in reading._grids} >= {"spread", "silent", "gradients"}
    views.read_rest(read_place(f"/run/{opened('broken').entry.id}", ""))
    views.read_rest(read_place("/run/nobody", ""))


def test_a_single_run_is_the_first_page_and_one_that_is_to_come_is_waited_for(
    tmp_path: Path,
) -> None:
    alone = Views(Folder(opened().entry.path))
    assert names(alone, "/") == ["state", "verdict", "loop", "layers"]
    waiting = Views(Folder(tmp_path / "later.db", wait=True))
    shown = waiting.show(read_place("/", ""))
    assert "Waiting for the first step" in text_of(shown.sections[1])


def test_finer_curves_of_a_run_that_is_not_there(views: Views) -> None:
    assert views.fine("nobody", (0, 1)) is None
    assert views.fine(opened("broken").entry.id, (0, 1)) is None


def test_studies_that_are_saved_beside_a_run_have_a_view(tmp_path: Path) -> None:
    shutil.copy(training(), tmp_path / "a.db")
    views = Views(Folder(tmp_path))
    (entry,) = views.folder.entries()
    run, place = f"/run/{entry.id}", read_place(f"/run/{entry.id}/studies", "")
    assert names(views, f"{run}/studies") == ["state", "studies"]
    assert "Studies" not in answer_of(views, read_place(run, ""))["frame"]
    before = digest_of(place, views.show(place))

    saved(tmp_path / "a.studies")
    assert digest_of(place, views.show(place)) != before  # an open page hears of it
    assert names(views, f"{run}/studies") == ["state", "studies", "study-0", "study-1"]
    answer = answer_of(views, place, {"still": {"theme": "light", "width": 900}})
    assert "Studies" in answer_of(views, read_place(run, ""))["frame"]
    for number in (0, 1):
        figure = answer["figures"][f"study-{number}"]
        assert figure["figure"]["data"]
        assert figure["still"].startswith("<svg")
