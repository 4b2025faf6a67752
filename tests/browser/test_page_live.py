"""The page while a run is written: it follows, it does not flicker, and it says what has ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.pages import served, writing

ROOT = Path(__file__).parents[2]
TRAIN = """
import sys, time
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    x = torch.randn(32, 20)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.03)
"""
STEP = (
    "+(document.querySelector('.state').textContent.match(/step ([\\d,]+)/) || [0, '-1'])[1]"
    ".replace(',', '')"
)
REMOVED = """() => new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.removedNodes)
        if (node.querySelector && node.querySelector('.js-plotly-plot')) window.frames_seen += 1;
}).observe(document.body, {childList: true, subtree: true})"""
CURVES = "document.querySelector('[id*=curves] .js-plotly-plot')"


def test_it_follows_a_run_and_says_when_its_writer_has_gone(visit, tmp_path):
    path = tmp_path / "run.db"
    with writing(path) as process, served(tmp_path) as address:
        first, second = visit(address), visit(address)  # several people at once
        page = first.page
        page.click(".runs a")
        page.wait_for_selector(".state.open")
        first.draw_all()
        begin = page.evaluate(STEP)
        # Neither the page nor the figure is made anew, and a zoom stays.
        page.evaluate(f"window.mine = {CURVES}; window.frames_seen = 0")
        page.evaluate("window.scrollTo({top: 0, behavior: 'instant'})")
        page.wait_for_timeout(200)
        box = page.locator("[id*=curves] .nsewdrag").first.bounding_box()
        page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 34, steps=5)
        page.mouse.up()
        page.wait_for_timeout(300)
        zoomed = page.evaluate("window.mine.layout.xaxis.range")
        page.evaluate(REMOVED)
        first.until(f"{STEP} > {begin} + 20")
        last = page.evaluate("window.mine._fullData[0].x.at(-1)")
        first.until(f"window.mine._fullData[0].x.at(-1) > {last}")
        assert page.evaluate(f"window.mine === {CURVES}")
        assert page.evaluate("window.frames_seen") == 0
        assert page.evaluate("window.mine.layout.xaxis.range") == pytest.approx(zoomed)
        assert zoomed[1] < begin
        assert page.evaluate("performance.getEntriesByType('navigation').length") == 1
        second.page.wait_for_selector("text=live")
        first.picture("page-live")
        process.send_signal(signal.SIGKILL)
        page.wait_for_selector("text=The writer has gone", timeout=20_000)
        assert "cut off" in page.locator(".state").text_content()
        first.picture("page-killed")
        second.page.wait_for_selector("text=cut off", timeout=20_000)
        first.leave()
        second.leave()


def test_a_run_that_was_killed_before(visit, tmp_path):
    path = tmp_path / "run.db"
    with writing(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with served(path) as address:
        opened = visit(address)  # a single run: its page is the first
        opened.page.wait_for_selector("text=The writer has gone")
        opened.draw_all()
        opened.leave()


def test_a_server_that_has_gone_is_said(visit, tmp_path):
    with served(tmp_path) as address:
        opened = visit(address)
        opened.page.wait_for_selector("text=No runs yet")
        assert not opened.page.locator("#gone").is_visible()
    opened.page.wait_for_selector("#gone:not([hidden])", timeout=20_000)
    opened.problems.clear()  # the browser says that nobody answers


def test_the_page_of_a_script_that_trains(visit, tmp_path):
    """`nethook run --ui`: the page waits, follows, stays when the script is over, and ends."""
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "nethook", "run", "--ui", "--to", "run.db", "train.py", "200"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/run/\w+\?token=[\w-]+", said)
        assert address, said
        opened = visit(address[0])
        page = opened.page
        page.wait_for_selector(".state.open", timeout=60_000)
        opened.draw_all()
        begin = page.evaluate(STEP)
        opened.until(f"{STEP} > {begin}", 30)
        page.evaluate("window.mine = true")
        page.wait_for_selector(".state.finished", timeout=60_000)
        assert page.evaluate("window.mine")  # the same page all along
        assert page.evaluate(STEP) == 199
        page.wait_for_selector("text=No problems found")
        opened.picture("page-of-a-script")
        rest = process.stderr.read()
        assert process.wait(30) == 0  # the script's process has ended, with its own code
    assert rest.rstrip().endswith(str(tmp_path / "run.db"))
    assert page.evaluate("fetch('/').then((answer) => answer.status)") == 200  # still looked at
    opened.leave()
    _end(address[0])


def _end(address: str) -> None:
    """End the server of an address, as an hour without a look would."""
    port = int(address.split(":")[2].split("/", maxsplit=1)[0])
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--beside" in words and _listens(int(place.parent.name), port):
            os.kill(int(place.parent.name), signal.SIGTERM)
            return
    pytest.fail("the page's process was not found")


def _listens(pid: int, port: int) -> bool:
    """Whether a process has a socket that listens at a port."""
    listening = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(f":{port:04X}") and fields[3] == "0A":
            listening.add(f"socket:[{fields[9]}]")
    handles = Path(f"/proc/{pid}/fd")
    return any(str(handle.readlink()) in listening for handle in handles.iterdir())
