"""One file per rule, in a folder by its place among causes; a docstring is its documentation."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions, entry_points
from typing import Final

from nethook.doctor.rule import Rule

FOLDERS: Final = ("loop", "parameters", "loss", "data", "start", "settings", "symptoms")
"""In the order of what explains what."""
_GROUP: Final = "nethook.rules"


@cache
def own_rules() -> tuple[Rule, ...]:
    """The rules of these folders, in the order of what explains what."""
    # As an import statement does it, which `nethook run` can tell from the script's.
    rules = [
        __import__(f"{__name__}.{folder}.{module.name}", fromlist=("RULE",)).RULE
        for folder in FOLDERS
        for path in __path__
        for module in pkgutil.iter_modules([f"{path}/{folder}"])
    ]
    return tuple(sorted(rules, key=lambda rule: (rule.cause, rule.code)))


def all_rules() -> Iterator[Rule]:
    """Our rules, and those that other packages offer under the entry point `nethook.rules`."""
    yield from own_rules()
    # As a rule there are none. To see that takes a third of the time that reading all of them does.
    listed = (package.read_text("entry_points.txt") for package in distributions())
    if any(_GROUP in text for text in listed if text):
        for entry in entry_points(group=_GROUP):
            yield entry.load()
