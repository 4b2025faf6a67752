"""Fixes that were tried, from plain data, as lines under their findings.

    tried = tried_by_code(run.info.get("tried"))
    tried.get("learning-rate-too-high")

reads "learning rate 0.1 → 0.001: training loss after 128 steps 2.31 → 0.42. It helped."
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nethook.text.numbers import ascii_number, count


def tried_by_code(stored: Any) -> dict[str, str]:
    """What came of each fix, by the code of its finding; the file may say anything."""
    entries = [entry for entry in stored if isinstance(entry, Mapping)] if _list(stored) else []
    return {str(entry.get("code", "")): tried_line(entry) for entry in entries[:20]}


def tried_line(entry: Mapping[str, Any]) -> str:
    """What came of one fix."""
    said = str(entry.get("change", ""))[:200]
    why = str(entry.get("why") or "")[:500]
    numbers = _numbers(entry)
    if entry.get("helped") is None:
        return f"{said}: not judged: {why or 'nothing was compared'}."
    verdict = "It helped." if entry.get("helped") else "It did not help."
    return f"{said}: {numbers}{f'; {why}' if why else ''}. {verdict}"


def _numbers(entry: Mapping[str, Any]) -> str:
    steps = entry.get("steps")
    after = f" after {count(steps, 'step')}" if isinstance(steps, int) else ""
    parts: list[str] = []
    losses = (("training loss", "train"), ("evaluation loss", "eval"))
    for name, phase in losses if entry.get("judged_by") != "eval" else losses[::-1]:
        pair = _pair(entry.get(phase))
        if pair is not None:
            ends = " → ".join(ascii_number(float(number), 3) for number in pair)
            parts.append(f"{name}{'' if parts else after} {ends}")
    return ", ".join(parts) or "no loss was seen"


def _pair(value: Any) -> tuple[float, float] | None:
    if not _list(value) or len(value) != 2:
        return None
    return None if not all(isinstance(n, int | float) for n in value) else (value[0], value[1])


def _list(value: Any) -> bool:
    return isinstance(value, list | tuple)
