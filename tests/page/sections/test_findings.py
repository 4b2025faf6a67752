"""The findings of a run."""

from __future__ import annotations

from nethook.page.section import Section
from nethook.page.sections.findings import findings
from tests.page.shown import figures_of, html_of, in_report, reading, subject, text_of


def test_every_finding_is_told_with_its_fix() -> None:
    shown = text_of(findings(subject()))
    for finding in reading().findings:
        assert finding.code in shown
        assert finding.fix in shown


def test_a_fix_that_was_tried_is_told_with_its_outcome() -> None:
    section = findings(subject())
    assert "Tried" not in text_of(section)
    data = dict(section.data())
    row = dict(data["rows"][0])
    row["finding"] = row["finding"]._replace(tried="rate / 10: training loss 2 → 1. It helped.")
    shown = text_of(Section("findings", "", lambda: {**data, "rows": [row]}))
    assert shown.index("Tried ") > shown.index("Fix ")
    assert "training loss 2 → 1. It helped." in shown


def test_a_finding_has_figures_that_show_it_and_no_empty_place() -> None:
    section = findings(subject())
    made = figures_of(section)
    assert made["finding-0-figure-0"]["data"]
    drawn = {name for name, spec in made.items() if spec is not None}
    shown = html_of(section, drawn=drawn)
    assert shown.count('class="figure"') == len(drawn)
    assert 'class="card finding alone"' in html_of(findings(subject(), drawn=()), drawn=())


def test_evidence_stands_beside_its_limit() -> None:
    shown = text_of(findings(subject()))
    assert "silent share 0.83 0.5" in shown


def test_the_finding_to_look_at_is_marked() -> None:
    shown = html_of(findings(subject(), "finding-1"))
    assert shown.count(" here") == 1
    assert 'data-focus="finding-1"' in shown


def test_sites_lead_to_their_layers() -> None:
    assert "/layer?at=block.relu2&amp;step=60" in html_of(findings(subject()))
    assert 'href="#layer-3"' in html_of(findings(in_report()), live=False)
