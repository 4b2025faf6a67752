"""The application: what its page loads, and that a run is read while it does."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from nethook.page.folder import Folder
from nethook.page.live import app as application
from nethook.page.live.app import make_app
from tests.figures.shared import training

HERE = {"Host": "127.0.0.1"}


def get(folder: Folder, path: str, **headers: str):
    client = make_app(folder).server.test_client()
    return client.get(path, headers={**HERE, **headers})


def test_the_page_loads_no_more_than_it_needs() -> None:
    folder = Folder(training())
    page = get(folder, "/").text
    scripts = re.findall(r'<script[^>]*src="([^"]*)"', page)
    for unused in ("async-", "polyfill", "dash_table", "package_data"):
        assert not any(unused in script for script in scripts)
    (own,) = re.findall(r'<script async id="plotly-js" src="([^"]*)" data-whole="([^"]*)"', page)
    part, whole = (get(folder, address) for address in own)
    assert part.status_code == whole.status_code == 200
    assert 1000 < len(part.data) < 0.4 * len(whole.data)
    assert "immutable" in part.headers["Cache-Control"]


def test_a_run_is_read_while_the_browser_loads(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(application, "_REST", 0.0)
    folder = Folder(training())
    run = folder.id_of(training())
    assert get(folder, f"/run/{run}", Host="elsewhere.example").status_code == 403
    assert not folder.is_open(run)  # nothing is read for whoever may not ask
    assert get(folder, f"/run/{run}?q=spread").status_code == 200
    entry = folder.entry(run)
    assert entry is not None
    wait_for(lambda: folder.is_open(run))
    reading = folder.open(entry).reading
    assert reading is not None
    wait_for(lambda: {"spread", "silent", "gradients"} <= {name for name, _ in reading._grids})


@pytest.mark.parametrize("path", ["/run/nobody", "/run/%00", "/run/x?fold=%ff&step=1"])
def test_reading_ahead_of_nothing(path) -> None:
    assert get(Folder(training()), path).status_code == 200


def wait_for(what, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)
