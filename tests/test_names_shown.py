"""Names of modules and files may hold anything; wherever they are shown they take one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import nethook
from nethook.cli.main import app
from nethook.doctor.finding import Finding
from nethook.running.verdict import verdict_lines
from nethook.runs.reading.run import Run
from nethook.text.paragraphs import Style

NAME = "a\nb\x1b31m\u202e"
HARMFUL = re.compile("\x1b|\u202e|a\nb")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of layers with such names, in a file with such a name, with findings about them."""
    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module(NAME, nn.Linear(8, 8))
    model.add_module(f"x{NAME}", nn.ReLU())
    model.add_module(f"y{NAME}", nn.Linear(8, 2))
    with torch.no_grad():
        getattr(model, NAME).bias.fill_(-1000.0)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    path = tmp_path_factory.mktemp("names") / f"{NAME}.db"
    with nethook.watch(model, optimizer, to=path, budget=None, snapshots={NAME: 2}) as watch:
        for _ in range(40):
            loss = model(torch.randn(16, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert not HARMFUL.search("".join(map(str, (watch, *watch.findings))))
    return nethook.open_run(path)


def test_a_run_shows_names_in_one_line(run: Run) -> None:
    address = next(site.address for site in run.sites if site.address.startswith("a"))
    assert address == "a\\u000ab\\u001b31m\\u202e"
    assert len(run.series(address)) > 0
    assert list(run.snapshots) == [address]
    said = [repr(run), *(site.address for site in run.sites), run.series(address), run.events]
    said += [run.catalogue, run.losses, dict(run.scalars), run.findings, run.overview()]
    with pytest.raises(nethook.errors.NoSuchSiteError) as caught:
        run.series("b")
    assert not HARMFUL.search("\n".join(map(str, (*said, caught.value))))


def test_findings_and_the_verdict_show_names_in_one_line(run: Run) -> None:
    found = nethook.diagnose(run)
    assert found
    lines = [*map(str, found), *verdict_lines(run, Style(False))]
    assert not any(HARMFUL.search(line) for line in lines)
    assert all("\n" not in line for line in map(str, found))
    with pytest.raises(nethook.errors.UnhealthyError) as caught:
        nethook.assert_healthy(run)
    assert not HARMFUL.search(str(caught.value))
    made = Finding("code", "error", f"at {NAME}", "fix", (NAME,))
    assert len(str(made).splitlines()) == 1
    assert not HARMFUL.search(str(made))


@pytest.mark.parametrize("command", ["check", "report", "diff", "export"])
def test_the_command_line_shows_names_in_one_line(run: Run, command: str, tmp_path: Path) -> None:
    more = {"diff": [str(run.path)], "report": ["-o", str(tmp_path / "none" / "x.html")]}
    for path in (str(run.path), str(tmp_path / f"{NAME}-none.db")):
        done = CliRunner().invoke(app, [command, path, *more.get(command, [])])
        assert not HARMFUL.search(done.output), done.output
