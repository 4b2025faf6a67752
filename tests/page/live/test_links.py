"""Where names lead on the page."""

from __future__ import annotations

from nethook.page.live.links import LiveLinks
from tests.page.shown import reading


def test_names_lead_to_views_and_parameters_to_their_layers() -> None:
    links = LiveLinks("id", reading())
    assert links.layer("conv1", step=3) == "/run/id/layer?at=conv1&step=3"
    assert links.layer("conv1.weight") == "/run/id/layer?at=conv1"
    assert links.layer("nowhere") == ""
    assert links.finding("finding-7") == "/run/id/findings?n=7"
    assert links.view("findings") == "/run/id/findings"
    assert links.view("fine") == "/fine?run=id"
