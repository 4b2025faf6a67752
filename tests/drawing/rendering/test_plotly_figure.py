"""What a notebook gets of a figure, with and without scripts."""

from __future__ import annotations

import base64
import copy
import pickle
import re

import plotly.graph_objects as go
import plotly.io as pio
import pytest

from nethook.drawing.rendering.plotly_figure import PLOTLY, Figure
from nethook.figures import overview
from tests.figures.shared import training


@pytest.fixture(scope="module")
def figure() -> Figure:
    return overview(training())


def test_it_is_a_figure_of_plotly(figure: Figure) -> None:
    assert isinstance(figure, go.Figure)
    assert type(copy.deepcopy(figure)) is type(pickle.loads(pickle.dumps(figure))) is Figure
    assert figure.to_dict() == go.Figure(figure).to_dict()


def test_every_viewer_finds_something(figure: Figure) -> None:
    bundle = figure._repr_mimebundle_()
    assert list(bundle) == [PLOTLY, "text/html", "image/svg+xml", "text/plain"]
    assert len(bundle[PLOTLY]["data"]) == len(figure.data)
    assert bundle[PLOTLY]["config"]["plotlyServerURL"] == ""
    # JupyterLab takes the elements of SVG out of the HTML of notebooks that it does not trust.
    encoded = re.search(
        r'<img alt="[^"]+" .*src="data:image/svg\+xml;base64,([^"]*)"', bundle["text/html"]
    )
    assert encoded
    assert base64.b64decode(encoded[1]).decode() == bundle["image/svg+xml"]
    assert "<script" not in bundle["text/html"]
    assert bundle["image/svg+xml"].startswith("<svg")
    assert len(bundle["text/plain"]) < 200
    assert not callable(figure._ipython_display_)  # it would be asked first


def test_only_what_is_asked_for(figure: Figure) -> None:
    assert list(figure._repr_mimebundle_(include={"text/html"})) == ["text/html"]
    assert PLOTLY not in figure._repr_mimebundle_(exclude={PLOTLY})
    assert figure._repr_html_() == figure._repr_mimebundle_()["text/html"]


def test_where_plotly_has_a_way_of_its_own_it_is_taken(
    figure: Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pio.renderers, "default", "colab")
    bundle = figure._repr_mimebundle_()
    assert "<svg xmlns" not in bundle.get("text/html", "")
