"""The application: what its page loads, what it answers, and that nothing ends with a traceback."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nethook.page.folder import Folder
from nethook.page.live import app as application
from nethook.page.live.app import Page
from nethook.page.urls import read_place
from tests.figures.shared import training
from tests.page.live.client import Client


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(Folder(training()))


def test_the_page_loads_its_own_files_and_no_others(client: Client) -> None:
    page = client.get("/").text
    loaded = re.findall(r'(?:src|href)="(/[^"]*)"', page)
    assert len(loaded) == 4
    for address in loaded:
        answered = client.get(address)
        assert answered.status_code == 200
        assert "immutable" in answered.headers["cache-control"]
    (whole,) = (client.get(address) for address in loaded if "plotly" in address)
    from plotly.offline import get_plotlyjs

    assert whole.content == get_plotlyjs().encode()


def test_a_run_is_read_while_the_browser_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "_REST", 0.0)
    folder = Folder(training())
    run = folder.id_of(training())
    client = Client(folder)
    assert client.get(f"/run/{run}", Host="elsewhere.example").status_code == 403
    assert not folder.is_open(run)  # nothing is read for whoever may not ask
    assert client.get(f"/run/{run}?q=spread").status_code == 200
    entry = folder.entry(run)
    assert entry is not None
    wait_for(lambda: folder.is_open(run))
    reading = folder.open(entry).reading
    assert reading is not None
    wait_for(lambda: {"spread", "silent", "gradients"} <= {name for name, _ in reading._grids})


def test_what_is_asked_for_first_is_made_before() -> None:
    folder = Folder(training())
    page = Page(folder, lambda: None)
    page.warm()
    assert folder.is_open(folder.id_of(training()))
    # Nor does the first click wait for what it shows.
    (entry,) = folder.entries()
    reading = folder.open(entry).reading
    assert reading is not None
    assert {"spread", "silent", "gradients"} <= {name for name, _ in reading._grids}
    client = Client(folder, warm=True)
    address = next(a for a in re.findall(r'href="(/[^"]*)"', client.get("/").text) if "plotly" in a)
    wait_for(lambda: "content-encoding" in client.get(address, Accept_Encoding="gzip").headers)
    packed = client.get(address, Accept_Encoding="gzip, br")
    plain = client.get(address)
    assert "content-encoding" not in plain.headers
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) < len(plain.content) / 3


def test_a_run_that_cannot_be_read_does_not_hinder_the_page(tmp_path) -> None:
    (tmp_path / "run.db").write_bytes(b"x" * 4096)
    Page(Folder(tmp_path / "run.db"), lambda: None).warm()
    Page(Folder(tmp_path / "later.db", wait=True), lambda: None).warm()


def wait_for(what, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/looks/none.js", 404), ("/looks/../app.py", 404), ("/?%", 200), ("/?%ff=%00&a", 200),
        ("/run/nobody", 200), ("/run/%00", 200), ("/run/x?fold=%ff&step=1", 200),
        ("/run/x?" + "a=1&" * 500, 200), ("/?token=x", 200), ("/%ff%00", 200),
        ("/view", 200), ("/view?at=//[", 200), ("/view?at=/run/%00", 200),
        ("/fine?run=x&from=1&to=2", 404), ("/fine?from=a", 400), ("/fine?from=2&to=1", 400),
        ("/fine?from=nan&to=inf", 400),
    ],
)  # fmt: skip
def test_odd_addresses_are_answered(client: Client, caplog, path: str, status: int) -> None:
    answered = client.get(path)
    assert answered.status_code == status
    assert status == 200 or answered.text.count("\n") == 1
    assert not caplog.records


def test_there_is_nothing_to_post_to(client: Client) -> None:
    for path in ("/", "/view", "/looks/page.js"):
        answered = client.post(path, b"{}")
        assert (answered.status_code, answered.text) == (404, "Nothing can be posted here.\n")
    huge = client.post("/", b" " * (2 << 20))
    assert (huge.status_code, huge.text.count("\n")) == (413, 1)


def test_an_error_of_ours_is_one_line_and_logged(tmp_path, monkeypatch, caplog) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("nethook.page.live.app.answer_of", fails)
    answered = Client(Folder(tmp_path)).get("/view?at=/")
    assert answered.status_code == 500
    assert answered.text == "nethook failed to answer: RuntimeError.\n"
    assert "RuntimeError: broken" in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.text(max_size=20), search=st.text(max_size=20), have=JSON)
def test_no_value_ends_with_a_500(client: Client, path: str, search: str, have: object) -> None:
    from urllib.parse import quote

    at = quote(f"/{path}?{search}", safe="", errors="surrogatepass")
    answered = client.get(f"/view?at={at}", Nethook_Have=json.dumps(have))
    assert answered.status_code == 200
    assert answered.json()["new"]


@pytest.mark.parametrize("have", ["", "{", "[" * 100_000, "1" * 200_000, "\xff"])
def test_what_is_no_json_counts_as_nothing(client: Client, have: str) -> None:
    assert client.get("/view?at=/", Nethook_Have=have).json()["new"]


def test_finer_numbers_are_those_of_the_file() -> None:
    folder = Folder(training())
    client = Client(folder)
    run = folder.id_of(training())
    sent = client.get(f"/fine?run={run}&from=40&to=50").json()
    (drawn,) = (trace for trace in sent["data"] if trace.get("name") == "training")
    from nethook import open_run

    loss = open_run(training()).loss()
    assert drawn["x"] == list(range(39, 52))
    np.testing.assert_allclose(drawn["y"], loss.shown[39:52], rtol=1e-6)


def test_an_event_is_sent_when_something_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "EVERY", 0.01)
    monkeypatch.setattr(application, "_BREATH", 0.001)
    looks: list[int] = []
    page = Page(Folder(training()), lambda: looks.append(1))
    digests = iter(["a", "a", "b"])

    def digest(*_: object) -> str:
        found = next(digests, "")
        if not found:
            page.ending.set()
        return found or "b"

    monkeypatch.setattr(application, "digest_of", digest)

    class Connected:
        async def is_disconnected(self) -> bool:
            return False

    async def lines() -> list[bytes]:
        stream = page._changes(read_place("/", ""), Connected())  # type: ignore[arg-type]
        return [line async for line in stream]

    sent = asyncio.run(lines())
    told = [line for line in sent if line.startswith(b"data")]
    assert told == [b"data: a\n\n", b"data: b\n\n"]
    assert len(looks) >= 3  # whoever listens looks
