"""`nethook --version` says whether nethook and torch fit."""

from __future__ import annotations

import pytest

from nethook.cli.commands import version
from nethook.errors import OldTorchError
from nethook.hooks.canaries import registry, report
from nethook.private_names import NAMES


def test_a_name_that_torch_has_changed_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.CANARIES, "torch._lazy_clone", lambda: False)
    monkeypatch.setitem(registry.CANARIES, "torch.Tensor._version", lambda: 1 / 0)
    lines = list(version.lines())[2:]
    assert lines == [
        (
            "changed in this torch: torch.Tensor._version (no other way; lost: "
            f"{NAMES['torch.Tensor._version'].lost})"
        ),
        (
            "changed in this torch: torch._lazy_clone (plain way taken; lost: "
            f"{NAMES['torch._lazy_clone'].lost})"
        ),
    ]


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "torch_version", lambda: None)
    assert list(version.lines())[1:] == ["torch is not installed"]


def test_a_torch_that_is_refused_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> object:
        raise OldTorchError("nethook needs torch 2.8 or newer")

    monkeypatch.setattr(version, "torch_version", lambda: "2.7.1")
    monkeypatch.delattr(report, "failing")  # so that the import asks for it below
    monkeypatch.setattr(report, "__getattr__", refused, raising=False)
    lines = list(version.lines())
    assert lines[1:] == ["torch 2.7.1: nethook needs torch 2.8 or newer"]
