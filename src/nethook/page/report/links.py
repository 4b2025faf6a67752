"""Where names lead in a report: to places in the same file."""

from __future__ import annotations

from collections.abc import Mapping


class ReportLinks:
    """Anchors of layers and findings.

    Arguments:
        layers: the anchor of each layer, by its address.
    """

    def __init__(self, layers: Mapping[str, str]) -> None:
        self._layers = layers

    def layer(self, address: str, **query: object) -> str:
        """To the layer, or "" where the report has none of this name."""
        anchor = self._layers.get(address, "")
        return f"#{anchor}" if anchor else ""

    def finding(self, anchor: str) -> str:
        """To a finding."""
        return f"#{anchor}"

    def view(self, name: str, **query: object) -> str:
        """A report has one view."""
        return ""
