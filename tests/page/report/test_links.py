"""Where names lead in a report."""

from __future__ import annotations

from nethook.page.report.links import ReportLinks


def test_names_lead_to_places_in_the_file() -> None:
    links = ReportLinks({"conv1": "layer-0"})
    assert links.layer("conv1", step=3) == "#layer-0"
    assert links.layer("nowhere") == ""
    assert links.finding("finding-7") == "#finding-7"
    assert links.view("findings") == ""
