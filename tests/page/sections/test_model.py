"""The modules of a model as a tree."""

from __future__ import annotations

from nethook.page.sections.model import model
from tests.figures.made import LAYERS
from tests.page.shown import html_of, in_report, subject, text_of


def test_every_module_is_there_with_its_type() -> None:
    shown = text_of(model(subject()))
    for address, kind, *_ in LAYERS:
        assert address.rpartition(".")[2] in shown
        assert kind in shown


def test_what_is_never_called_says_so() -> None:
    assert "never called" in text_of(model(subject()))


def test_layers_with_findings_are_marked_and_lead_to_them() -> None:
    assert 'findings?n=0"><span class="badge error">dead-units' in html_of(model(subject()))
    assert '<a href="#finding-0"><span class="badge error">' in html_of(model(in_report()))


def test_modules_stand_inside_of_those_they_are_in() -> None:
    shown = html_of(model(subject()))
    begin = shown.index(">block<")
    inside = shown[begin : shown.index("</details>", begin)]
    assert ">conv2<" in inside
    assert ">fc1<" not in inside


def test_of_very_many_modules_the_rest_is_counted() -> None:
    assert "7 more are not shown." in text_of(model(subject(), most=3))
