"""`watch.live()`: an overview that is redrawn in its cell. A cell is played by a list."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace

import plotly.io as pio
import pytest
import torch
from torch import nn

import nethook
from nethook.drawing.rendering.plotly_figure import PLOTLY
from nethook.errors import MissingLibraryError
from nethook.figures.notebook import Live, _Drawn
from nethook.runs.writing.writer import RunWriter


class Cell:
    """What a notebook's `display(…, display_id=True)` returns, and what it was given."""

    def __init__(self) -> None:
        self.shown: list[object] = []

    def display(self, shown: object, *, display_id: bool) -> Cell:
        assert display_id
        self.update(shown)
        return self

    def update(self, shown: object) -> None:
        # Such an object is asked to show itself, which it does in a place of its own.
        assert not hasattr(shown, "_ipython_display_")
        self.shown.append(shown)


@pytest.fixture
def cell(monkeypatch) -> Cell:
    made = Cell()
    assert pio.renderers.default is not None  # Plotly looks for a notebook once: not for this one
    core, front = ModuleType("IPython.core.getipython"), ModuleType("IPython.display")
    core.get_ipython = lambda: SimpleNamespace()
    front.display = made.display
    for name, module in (
        ("IPython", ModuleType("IPython")), ("IPython.core", ModuleType("IPython.core")),
        ("IPython.core.getipython", core), ("IPython.display", front),
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    return made


def until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def steps_of(figure) -> int:
    return max((len(trace.x) for trace in figure.data if trace.x is not None), default=0)


def test_it_is_redrawn_while_the_run_is_written(cell: Cell, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("nethook.figures.notebook.EVERY", 0.05)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db") as watch:
        live = watch.live()
        assert isinstance(live, Live)
        assert "on" in repr(live)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
        until(lambda: len(cell.shown) > 1)
    until(lambda: not live._thread.is_alive())  # the run has ended, so it ends
    assert steps_of(cell.shown[-1]._figure) == 5  # and shows all of it
    # JupyterLab never draws a figure of Plotly's anew, so there is one, and it is the last.
    kinds = [list(shown._repr_mimebundle_()) for shown in cell.shown if isinstance(shown, _Drawn)]
    assert PLOTLY in kinds[-1]
    assert all(PLOTLY not in before and "text/html" in before for before in kinds[:-1])
    live.stop()
    assert "stopped" in repr(live)


def test_closing_shows_the_last_step_before_it_returns(cell: Cell, tmp_path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = nethook.watch(model, optimizer, to=tmp_path / "run.db")
    live = watch.live()  # which looks every two seconds: the run is shorter
    for _ in range(7):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    watch.close()
    assert steps_of(cell.shown[-1]._figure) == 7
    assert PLOTLY in cell.shown[-1]._repr_mimebundle_()
    assert not live._thread.is_alive()


def test_a_notebook_gets_what_plotly_makes_of_the_figure() -> None:
    class Figure:
        def _repr_mimebundle_(self, include: object, exclude: object) -> dict[str, object]:
            return {PLOTLY: (include, exclude), "text/html": "<img>"}

    bundle = _Drawn(Figure(), last=True)._repr_mimebundle_(include={"text/html"}, exclude=None)
    assert bundle == {PLOTLY: ({"text/html"}, None), "text/html": "<img>"}
    assert _Drawn(Figure(), last=False)._repr_mimebundle_() == {"text/html": "<img>"}


def test_before_the_first_step_it_says_so(cell: Cell, tmp_path) -> None:
    live = Live(tmp_path / "none.db", lambda: False, every=0.02)
    assert "waiting for the first step" in repr(cell.shown[0])
    live.stop()
    with RunWriter(tmp_path / "empty.db"):
        live = Live(tmp_path / "empty.db", lambda: False, every=0.02)
        assert repr(cell.shown[-1]) == "waiting for the first step"
        live.stop()


def test_outside_a_notebook_it_says_what_to_type(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    with pytest.raises(MissingLibraryError, match=r"`nethook ui` beside it"):
        Live(tmp_path / "run.db", lambda: True)
