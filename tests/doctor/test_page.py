"""docs/doctor.md lists every code as the rules document themselves."""

from __future__ import annotations

from nethook.doctor.rules import own_rules
from tools.rules_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tools/rules_page.py"


def test_every_code_and_threshold_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"**`{rule.code}`**" in text for rule in own_rules())
