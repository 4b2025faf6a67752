"""Figures as files. Pictures are drawn by a browser: tests/browser has those."""

from __future__ import annotations

import json
import sys

import pytest

from nethook.drawing.rendering.render import figure
from nethook.drawing.rendering.saving import save
from nethook.drawing.training.curves import curves
from nethook.errors import MissingLibraryError, OptionError


class Unable:
    """A figure on a machine without a browser."""

    def __init__(self, error):
        self.error = error

    def write_image(self, *_, **__):
        raise self.error


def test_html_has_all_it_needs_and_json_is_json(tmp_path):
    made = figure(curves([]))
    page = save(made, tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<script src=" not in page
    assert '"showSendToCloud": false' in page
    assert json.loads(save(made, tmp_path / "a.json").read_text(encoding="utf-8"))["layout"]


def test_an_ending_that_nobody_knows(tmp_path):
    with pytest.raises(
        OptionError, match=r"`path` must end with one of \.png, \.svg.*; got 'a\.bmp'"
    ):
        save(None, tmp_path / "a.bmp")


def test_without_kaleido(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(
        MissingLibraryError, match=r"needs kaleido.*pip install 'nethook\[export\]'"
    ):
        save(None, tmp_path / "a.png")


def test_without_a_browser(tmp_path):
    broken = Unable(RuntimeError("Kaleido requires Google Chrome to be installed."))
    with pytest.raises(MissingLibraryError, match="drawn by Chrome or Chromium, and kaleido found"):
        save(broken, tmp_path / "a.svg")


def test_another_error_stays_what_it_is(tmp_path):
    with pytest.raises(ValueError, match="width"):
        save(Unable(ValueError("width")), tmp_path / "a.svg")
