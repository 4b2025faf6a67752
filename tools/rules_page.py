"""Writes the part of docs/doctor.md that lists every code, from the docstrings of the rules.

python tools/rules_page.py
"""

from __future__ import annotations

import importlib
import re
import textwrap
from pathlib import Path

from nethook.doctor.rule import Rule
from nethook.doctor.rules import own_rules

PAGE = Path(__file__).resolve().parent.parent / "docs" / "doctor.md"
BEGIN, END = "<!-- rules: written by tools/rules_page.py -->", "<!-- end of rules -->"
CAUSES = (
    "The contract of the loop", "Loss and target", "Data and input", "The network as it starts",
    "Settings of the optimizer", "Symptoms", "When nothing else explains it",
)  # fmt: skip


def section() -> str:
    """Every code, in the order of what explains what."""
    lines: list[str] = []
    cause = -1
    for rule in own_rules():
        if rule.cause != cause:
            cause = int(rule.cause)
            lines += [f"### {CAUSES[cause]}", ""]
        lines += [*_shown(rule), ""]
    return "\n".join(lines).rstrip()


def _shown(rule: Rule) -> list[str]:
    module = importlib.import_module(rule.look.__module__)
    head, _, rest = (module.__doc__ or "").partition("\n")
    parts = re.split(r"\n(?=(?:Cause|Evidence|Fix|Silent): )", "\n" + rest.strip())
    lines = [f"**`{rule.code}`**: {head}", ""]
    for paragraph in filter(None, (text.strip() for text in parts)):
        label, _, text = " ".join(paragraph.split()).partition(": ")
        lines += textwrap.wrap(
            f"- {label}: {text}", 100, subsequent_indent="  ", break_on_hyphens=False
        )
    limits = [f"`{name}` {getattr(rule.defaults, name):g}" for name in rule.threshold_names]
    reads = [f"`{field}`" for field in sorted(rule.reads)]
    for label, names in (("Thresholds", limits), ("Reads", reads)):
        whole = [name.replace(" ", "\0") if name in reads else name for name in names]
        wrapped = textwrap.wrap(
            f"- {label}: {', '.join(whole)}", 100, subsequent_indent="  ", break_on_hyphens=False
        )
        lines += [
            line.replace("\0", " ") for line in wrapped
        ]  # the name of a field stays on a line
    return lines


def page() -> str:
    """The page with that part brought up to date."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{section()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
