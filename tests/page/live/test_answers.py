"""What a browser is sent: what is new, within bounds, also for hostile runs."""

from __future__ import annotations

import base64
import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from nethook.figures.reading import Reading
from nethook.page.folder import Folder
from nethook.page.live.answers import answer_of
from nethook.page.live.routes import Views
from nethook.page.urls import VIEWS, read_place
from nethook.text.escape import script_json
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
    return json.loads(script_json(answer_of(views, read_place(path, search), have)))


def has_of(view) -> dict[str, object]:
    tags = {name: part["tag"] for name, part in view["sections"].items()}
    tags |= {f"figure-{name}": part["tag"] for name, part in view["figures"].items()}
    return {"key": view["key"], "tags": tags}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["training", "hostile", "broken"])
def test_every_view_of_every_run_can_be_sent(views, ids, view, name) -> None:
    text = str(ask(views, f"/run/{ids[name]}/{view}"))
    assert "cannot be shown" not in text
    assert HOSTILE not in text  # its control characters are spelt out
    assert "<script" not in text
    assert ("This run cannot be read" in text) == (name == "broken")


def test_another_step_moves_a_line_and_draws_nothing_anew(views, ids) -> None:
    path = f"/run/{ids['training']}/layer"
    sent = ask(views, path, "?at=conv1&step=17")
    for name in ("courses", "histogram", "bands"):
        assert sent["figures"][name]["figure"]["layout"]["meta"]["line"]["type"] == "line"
    assert sent["step"] == 17
    other = ask(views, path, "?at=conv1&step=18", has_of(sent))
    assert other["step"] == 18
    assert "section-layer" in other["sections"]
    assert other["figures"] == {}


def test_sections_stand_in_a_new_frame(views, ids) -> None:
    sent = ask(views, f"/run/{ids['training']}")
    assert '<div class="section" id="section-verdict">' in sent["frame"]
    assert sent["frame"].count("1 error, 1 warning, 1 note") == 1
    assert all(set(section) == {"tag"} for section in sent["sections"].values())  # not twice
    for number, view in enumerate(VIEWS, start=1):
        to = f"/run/{ids['training']}{'/' if view else ''}{view}"
        there = f'<a href="{to}" id="go-{number}"' in sent["frame"]
        assert there == (view != "studies")  # none was saved beside this run


def test_what_a_browser_has_is_not_sent_again(views, ids) -> None:
    path = f"/run/{ids['training']}"
    sent = ask(views, path)
    assert sent["new"]
    assert {"section-verdict", "section-loop", "section-layers", "section-state"} == set(
        sent["sections"]
    )
    again = ask(views, path, have=has_of(sent))
    assert not again["new"]
    assert "frame" not in again
    assert (again["sections"], again["figures"]) == ({}, {})
    assert again["state"] == sent["state"]
    other = ask(views, path, "?q=spread", has_of(sent))
    assert not other["new"]
    assert set(other["figures"]) == {"heatmap"}  # a choice about the heatmap
    assert other["state"] != sent["state"]
    assert ask(views, f"{path}/depth", "", has_of(sent))["new"]


def test_smoothing_and_scales_are_the_browser_s(views, ids) -> None:
    path = f"/run/{ids['training']}"
    sent = ask(views, path)
    other = ask(views, path, "?smooth=60&log=log&x=time", has_of(sent))
    assert set(other["sections"]) == {"section-loop"}
    assert other["figures"] == {}


@pytest.mark.parametrize(
    "have", [None, 7, [], {}, {"key": 1, "tags": 2}, {"tags": {"curves": []}}, "x"]
)
def test_nonsense_from_a_browser_is_no_harm(views, ids, have) -> None:
    assert ask(views, f"/run/{ids['training']}", "?fold=~~&q=%00&step=x", have)["new"]


@pytest.mark.parametrize(
    ("path", "search"),
    [
        ("/run/../../etc/passwd", ""), ("/run/%2e%2e", ""), ("/run/" + "a" * 5000, ""),
        ("/compare", "?runs=~~x~../a.db"), ("/compare", ""), ("/", "?find=\x00&from=99"),
        ("/nosuch", ""), ("/", "?sort=-loss&group=1&show=a~b&pick=~~"),
    ],
)  # fmt: skip
def test_places_that_are_not_there(views, path, search) -> None:
    assert "cannot be shown" not in str(ask(views, path, search))


def test_extremes_are_exact_and_points_are_few(views, ids) -> None:
    sent = ask(views, f"/run/{ids['training']}", "?q=output_gradients")
    cells = sent["figures"]["heatmap"]["figure"]["data"][0]["cells"]
    grid = Reading(training()).needed_grid("output_gradients")
    codes = np.frombuffer(base64.b64decode(cells["codes"]), np.uint8).reshape(cells["shape"])
    values = decode_codes(codes, cells["low"], cells["high"], log=cells["log"])
    assert values.max() == pytest.approx(np.nanmax(grid.greatest), rel=1e-12)
    assert values.min() == pytest.approx(np.nanmin(grid.least), rel=1e-12)
    assert codes.size < 20_000
    assert len(json.dumps(sent)) < 400_000


def test_a_row_knows_where_it_leads(views, ids) -> None:
    sent = ask(views, f"/run/{ids['training']}", "?q=gradients")
    links = sent["figures"]["heatmap"]["figure"]["layout"]["meta"]["links"]
    assert links[2]["to"] == f"/run/{ids['training']}/layer?at=block.conv2&q=gradients"
    sent = ask(views, f"/run/{ids['training']}", "?q=spread&fold=block")
    links = sent["figures"]["heatmap"]["figure"]["layout"]["meta"]["links"]
    assert {"fold": ""} in links


def test_a_run_that_breaks_while_it_is_looked_at(tmp_path) -> None:
    path = tmp_path / "run.db"
    shutil.copy(training(), path)
    mine = Views(Folder(tmp_path))
    run = mine.folder.entries()[0].id
    assert ask(mine, f"/run/{run}")["sections"]["section-verdict"]
    path.write_bytes(path.read_bytes()[:9000])
    mine.folder.open(mine.folder.entries()[0]).when -= 1000  # what takes long is not read at once
    assert "This run cannot be read" in str(ask(mine, f"/run/{run}"))
    Path(path).unlink()
    text = str(ask(mine, f"/run/{run}"))
    assert "cannot be read" in text or "nothing here" in text


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["training", "hostile"])
def test_a_browser_that_cannot_draw_yet_is_sent_pictures(views, ids, view, name) -> None:
    asked = {"still": {"theme": "dark", "width": 700}}
    sent = ask(views, f"/run/{ids[name]}/{view}", have=asked)
    for part in sent["figures"].values():
        assert ("still" in part) == (part["figure"] is not None)
        if part["figure"] is None:
            continue
        picture = ET.fromstring(part["still"])
        height = part["figure"]["layout"].get("height", 300)
        assert picture.get("viewBox") == f"0 0 700 {height}"
        # No name of a stranger's becomes an element or an attribute that is run.
        kinds = {element.tag.rpartition("}")[2] for element in picture.iter()}
        assert kinds <= {"svg", "rect", "text", "tspan", "path", "polygon", "circle", "image"}
        names = {attribute for element in picture.iter() for attribute in element.attrib}
        assert not [each for each in names if each.lower().startswith("on")]


@pytest.mark.parametrize(
    "asked",
    [None, 1, "x", [], {}, {"theme": "dark"}, {"theme": "pink", "width": 700},
     {"theme": "dark", "width": 1e9}, {"theme": "dark", "width": True},
     {"theme": ["dark"], "width": 700}, {"theme": "light", "width": 10**9}],
)  # fmt: skip
def test_pictures_are_sent_to_who_asks_for_them_well(views, ids, asked) -> None:
    sent = ask(views, f"/run/{ids['training']}", have={"still": asked})
    assert sent["figures"]
    assert all("still" not in part for part in sent["figures"].values())
