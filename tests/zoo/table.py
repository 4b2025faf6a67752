"""The table of the zoo, for its README."""

from __future__ import annotations

from pathlib import Path

from tests.zoo import EXHIBITS, HOUSES

__all__ = ["README", "readme"]

README = Path(__file__).with_name("README.md")

HEAD = """\
# The zoo

Odd models, each there for one mechanism that a hook can get wrong. `exhibit.py` says what an
exhibit is, `observe.py` runs one and writes down everything that can be seen of the run,
`compare.py` compares two such runs bit by bit, `hand.py` takes values with hand-written hooks,
`bomb.py` throws exceptions into the middle, `saved.py` saves a model in every way. None of it knows
nethook: the zoo is the outside world.
What belongs here: a model whose mechanism no other has. What does not: tests, and sizes.

This page is written by `python -m tests.zoo`; a test holds it up to date.
"""


def readme() -> str:
    """The whole page."""
    lines = [HEAD, f"{len(EXHIBITS)} exhibits in {len(HOUSES)} houses.", ""]
    for house in HOUSES:
        title = (house.__doc__ or "").strip().splitlines()[0]
        lines += [f"## `{house.__name__.rpartition('.')[2]}.py`", "", title, ""]
        lines += ["| exhibit | mechanism |", "| --- | --- |"]
        lines += [f"| `{item.name}` | {item.mechanism} |" for item in house.EXHIBITS]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"
