"""The bar of an extraction: what it says on a terminal, and nothing elsewhere."""

from __future__ import annotations

import io
import re

import torch
from rich.console import Console
from torch import nn

import nethook
from nethook.extracting.progress import Bar


def shown(total, done, batches, *, terminal=True, **options):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=120, color_system=None)
    with Bar(total, done, console=console, **options) as bar:
        for _ in range(batches):
            bar.advance(32)
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", stream.getvalue())


def test_a_terminal_shows_how_far_how_fast_and_how_long():
    last = shown(10, 4, 6).replace("\r", "\n").strip().splitlines()[-1]
    assert re.search(
        r"extracting .* 10/10 batches  [\d,]+ samples/s \d:\d\d:\d\d left \d:\d\d:\d\d", last
    )


def test_other_work_has_its_own_words():
    last = shown(2, 0, 2, label="sweeping", unit="cells")
    assert re.search(r"sweeping .* 2/2 +batches  [\d,]+ cells/s", last)


def test_an_unknown_length():
    assert re.search(r" 3/\? +batches", shown(None, 0, 3))


def test_nothing_where_nobody_looks(tmp_path, capfd):
    assert shown(10, 0, 3, terminal=False) == ""
    assert shown(10, 0, 3, shown=False) == ""
    assert "batches" in shown(10, 0, 3, terminal=False, shown=True)
    nethook.extract(nn.Sequential(nn.Identity()), [torch.ones(2, 2)], at="0", to=tmp_path)
    assert capfd.readouterr() == ("", "")


def test_more_batches_than_were_expected():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with Bar(2, 0, shown=True, console=console) as bar:
        bar.advance(1)
        bar.expect(4)
        for _ in range(4):
            bar.advance(1)
    assert "5/5 batches" in re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", stream.getvalue())
    with Bar(2, 0, shown=False) as bar:
        bar.expect(4)
