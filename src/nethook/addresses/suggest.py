"""What a person may have meant: close names, and the `**.` form of a glob."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

from nethook.addresses.glob import escape, unescape

_SHOWN = 4  # names in a message; more is a wall of text


def close_names(name: str, names: Sequence[str]) -> list[str]:
    """The names closest to `name`: those that end in it first, then those spelt alike."""
    tail = [other for other in names if other.endswith(f".{name}")] if name else []
    alike = difflib.get_close_matches(name, names, n=_SHOWN, cutoff=0.6)
    last = name.rpartition(".")[2]
    by_last = {other.rpartition(".")[2]: other for other in reversed(names)}
    cousins = [
        by_last[segment] for segment in difflib.get_close_matches(last, list(by_last), n=_SHOWN)
    ]
    return list(dict.fromkeys([*tail, *alike, *cousins]))[:_SHOWN]


def hint(
    pattern: str, names: Sequence[str], *, kind: str, matched: Callable[[str], list[str]]
) -> str:
    """A sentence that says what to type instead of `pattern`, among `names` of one kind.

    `matched` answers which names another pattern would match.
    """
    if pattern in names:
        return f"There is a {kind} of that very name: write {escape(pattern)!r}."
    if not pattern.startswith("**"):
        deep = f"**.{pattern}"
        below = matched(deep)
        if below:
            return f"Did you mean {deep!r}? It matches {listing(below)}."
    # As patterns: what is shown can be typed.
    return closest(unescape(pattern), names, kind=kind, spelt=escape)


def closest(
    name: str, names: Sequence[str], *, kind: str, spelt: Callable[[str], str] = str
) -> str:
    """A sentence with the names that are close to `name`, or else with some that there are."""
    close = [spelt(other) for other in close_names(name, names)]
    if close:
        return f"Closest: {listing(close)}."
    if not names or list(names) == [""]:
        return f"The model has no {kind}s below its root."
    return f"The model's {kind}s: {listing(spelt(other) for other in names)}."


def listing(names: Iterable[str]) -> str:
    """A few quoted names, and how many more there are."""
    quoted = [repr(name) for name in names]
    more = len(quoted) - _SHOWN
    shown = ", ".join(quoted[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
