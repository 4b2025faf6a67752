"""What ran, and what happened."""

from __future__ import annotations

from nethook.page.sections.ran import ran
from tests.page.shown import html_of, in_report, subject, text_of


def test_ranks_events_and_what_ran_are_told() -> None:
    shown = text_of(ran(subject()))
    assert "zero_grad, forward, backward, step" in shown
    assert "finished" in shown
    assert "AdamW" in shown


def test_the_data_of_a_saved_batch_is_not_shown() -> None:
    for section in (ran(subject()), ran(in_report())):
        assert "0.123456789" not in html_of(section)


def test_a_report_folds_events_and_has_ranks_only_where_there_are_several() -> None:
    shown = html_of(ran(in_report()), live=False)
    assert '<details class="card plain"><summary>Events (3)</summary>' in shown
    assert "Ranks" not in shown
