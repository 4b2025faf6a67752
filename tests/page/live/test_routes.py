"""What a browser is sent: the parts that are new, within bounds, also for hostile runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from dash._utils import to_json
from dash.exceptions import PreventUpdate

from nethook.drawing.plotly_js import TRACES
from nethook.figures.reading import Reading
from nethook.page.folder import Folder
from nethook.page.html import fill
from nethook.page.live.app import answer_of
from nethook.page.live.routes import Views
from nethook.page.urls import VIEWS, read_place
from tests.drawing.codes import decode_codes
from tests.figures.shared import HOSTILE, changed, hostile, training


@pytest.fixture(scope="module")
def views(tmp_path_factory) -> Views:
    place = tmp_path_factory.mktemp("views")
    for made in (training, changed, hostile):
        shutil.copy(made(), place / f"{made.__name__}.db")
    (place / "broken.db").write_bytes(b"x" * 4096)
    return Views(Folder(place))


@pytest.fixture(scope="module")
def ids(views) -> dict[str, str]:
    return {entry.name: entry.id for entry in views.folder.entries()}


def ask(views: Views, path: str, search: str = "", have: object = None):
    body, view = answer_of(views, read_place(path, search), have)
    return body, json.loads(to_json(view))


def has_of(view) -> dict[str, object]:
    tags = {name: part["tag"] for name, part in view["parts"].items()}
    return {"skeleton": view["skeleton"], "tags": tags}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["training", "hostile", "broken"])
def test_every_view_of_every_run_can_be_sent(views, ids, view, name) -> None:
    body, sent = ask(views, f"/run/{ids[name]}/{view}")
    text = to_json([body, sent])
    assert "cannot be shown" not in text
    assert HOSTILE not in text  # its control characters are spelt out
    assert ("This run cannot be read" in text) == (name == "broken")


def test_the_page_has_what_draws_its_figures(views, ids) -> None:
    """plotly.js is sent with these kinds of traces alone."""
    drawn = set()
    for place in (*(f"/run/{ids['training']}/{view}" for view in VIEWS), "/compare"):
        search = (
            "?at=conv1" if place.endswith("layer") else f"?runs={ids['training']}~{ids['changed']}"
        )
        _, sent = ask(views, place, search)
        for part in sent["parts"].values():
            drawn |= {trace["type"] for trace in (part.get("figure") or {"data": ()})["data"]}
    assert {"scatter", "heatmap"} <= drawn <= {"scatter", *TRACES}


def test_another_step_moves_a_line_and_draws_nothing_anew(views, ids) -> None:
    path = f"/run/{ids['training']}/layer"
    _, sent = ask(views, path, "?at=conv1&step=17")
    for name in ("courses", "histogram", "bands"):
        assert sent["parts"][name]["figure"]["layout"]["meta"]["line"]["type"] == "line"
    assert sent["step"] == 17
    _, other = ask(views, path, "?at=conv1&step=18", has_of(sent))
    assert other["step"] == 18
    assert "step" in other["parts"]
    assert not any("figure" in part for part in other["parts"].values())


def test_texts_stand_in_a_new_skeleton(views, ids) -> None:
    body, view = answer_of(views, read_place(f"/run/{ids['training']}", ""), None)
    verdict = view["parts"]["verdict"]["nodes"]
    fill(body, view["parts"])
    assert not any("nodes" in part for part in view["parts"].values())
    text = to_json(body)
    assert to_json(verdict) in text
    assert f'"data-tag":"{view["parts"]["verdict"]["tag"]}"' in text


def test_what_can_be_chosen_is_read_ahead_of_a_run_that_has_ended(views, ids) -> None:
    place = read_place(f"/run/{ids['training']}", "")
    views.read_rest(place)
    reading = views.folder.open(views.folder.entry(ids["training"])).reading
    assert {name for name, _ in reading._grids} >= {"spread", "silent", "gradients"}
    views.read_rest(read_place(f"/run/{ids['broken']}", ""))
    views.read_rest(read_place("/run/nobody", ""))


def test_what_a_browser_has_is_not_sent_again(views, ids) -> None:
    path = f"/run/{ids['training']}"
    body, sent = ask(views, path)
    assert sent["new"]
    assert {"verdict", "curves", "heatmap", "state"} <= set(sent["parts"])
    with pytest.raises(PreventUpdate):
        ask(views, path, have=has_of(sent))
    body, other = ask(views, path, "?q=spread", has_of(sent))
    assert body is not None
    assert not other["new"]
    assert "heatmap" in other["parts"]
    assert "curves" not in other["parts"]  # a choice about the heatmap
    _, elsewhere = ask(views, f"{path}/depth", "", has_of(sent))
    assert elsewhere["new"]


@pytest.mark.parametrize(
    "have", [None, 7, [], {}, {"skeleton": 1, "tags": 2}, {"tags": {"curves": []}}, "x"]
)
def test_nonsense_from_a_browser_is_no_harm(views, ids, have) -> None:
    assert ask(views, f"/run/{ids['training']}", "?fold=~~&q=%00&step=x", have)[1]["new"]


@pytest.mark.parametrize(
    ("path", "search"),
    [
        ("/run/../../etc/passwd", ""), ("/run/%2e%2e", ""), ("/run/" + "a" * 5000, ""),
        ("/compare", "?runs=~~x~../a.db"), ("/compare", ""), ("/", "?find=\x00&from=99"),
        ("/nosuch", ""),
    ],
)  # fmt: skip
def test_places_that_are_not_there(views, path, search) -> None:
    body, sent = ask(views, path, search)
    assert "cannot be shown" not in to_json([body, sent])


def test_extremes_are_exact_and_points_are_few(views, ids) -> None:
    _, sent = ask(views, f"/run/{ids['training']}", "?q=output_gradients")
    cells = sent["parts"]["heatmap"]["figure"]["data"][0]["cells"]
    grid = Reading(training()).needed_grid("output_gradients")
    import base64

    codes = np.frombuffer(base64.b64decode(cells["codes"]), np.uint8).reshape(cells["shape"])
    values = decode_codes(codes, cells["low"], cells["high"], log=cells["log"])
    assert values.max() == pytest.approx(np.nanmax(grid.greatest), rel=1e-12)
    assert values.min() == pytest.approx(np.nanmin(grid.least), rel=1e-12)
    assert codes.size < 20_000
    assert len(to_json(sent)) < 400_000


def test_a_row_knows_where_it_leads(views, ids) -> None:
    _, sent = ask(views, f"/run/{ids['training']}", "?q=gradients")
    links = sent["parts"]["heatmap"]["figure"]["layout"]["meta"]["links"]
    assert links[2]["to"] == f"/run/{ids['training']}/layer?at=block.conv2&q=gradients"
    _, sent = ask(views, f"/run/{ids['training']}", "?q=spread&fold=block")
    links = sent["parts"]["heatmap"]["figure"]["layout"]["meta"]["links"]
    assert {"fold": ""} in links


def test_the_numbers_at_a_step(views, ids) -> None:
    _, sent = ask(views, f"/run/{ids['training']}/layer", "?at=conv1&step=17")
    text = to_json(sent["parts"]["step"])
    series = Reading(training()).run.series("conv1", "outputs")
    from nethook.text.numbers import number

    assert number(float(series["mean"][17]), 4) in text
    assert number(float(series["std"][17]), 4) in text


def test_runs_are_compared(views, ids) -> None:
    _, sent = ask(views, "/compare", f"?runs={ids['training']}~{ids['changed']}~{ids['hostile']}")
    assert "They diverge at step 61, first in outputs of conv1" in to_json(sent["parts"]["verdict"])
    names = {trace.get("name", "") for trace in sent["parts"]["curves"]["figure"]["data"]}
    assert any("changed, training" in name for name in names)


def test_a_run_that_breaks_while_it_is_looked_at(views, ids, tmp_path) -> None:
    path = tmp_path / "run.db"
    shutil.copy(training(), path)
    mine = Views(Folder(tmp_path))
    run = mine.folder.entries()[0].id
    assert ask(mine, f"/run/{run}")[1]["parts"]["verdict"]
    path.write_bytes(path.read_bytes()[:9000])
    mine.folder.open(mine.folder.entries()[0]).when -= 1000  # what takes long is not read at once
    body, _ = ask(mine, f"/run/{run}")
    assert "This run cannot be read" in to_json(body)
    Path(path).unlink()
    body, _ = ask(mine, f"/run/{run}")
    assert "cannot be read" in to_json(body) or "nothing here" in to_json(body)
