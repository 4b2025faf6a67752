r"""Globs over dotted names, read into regular expressions.

    *        any characters within one segment          conv*      conv1, conv_out
    **       any characters, across segments            **.conv*  conv1, layer1.0.conv2
    ?        one character within a segment             fc?       fc1
    [abc]    one of these; [!abc] one that is not       fc[12]    fc1, fc2
    {a,b}    either                                     {q,k}_proj
    \x       the character x itself, also in brackets    a\*b      a*b

A glob is anchored: it matches whole names. `**.` stands for any number of leading segments, also
none; a closing `.**` stands for what lies below, not for the module itself. In brackets, `]` as the
first character and `-` at either end mean themselves.
"""

from __future__ import annotations

import re
from functools import lru_cache

from nethook.errors import PatternError

# What must be escaped in a name for it to mean itself. `/` and `#` belong to op addresses.
SPECIAL = frozenset("*?[]{}/#\\")
_GLOB = frozenset("*?[{")
# What follows a `[`: `!` or not, then characters or escaped ones, of which the first may be `]`.
_BRACKET = re.compile(r"(!?+)((?:\\.|[^\\])(?:\\.|[^\\\]])*)\]", re.DOTALL)
_RANGE = re.compile(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", re.DOTALL)


def escape(name: str) -> str:
    """`name` as a pattern that matches only itself."""
    if SPECIAL.isdisjoint(name):
        return name
    return "".join(f"\\{char}" if char in SPECIAL else char for char in name)


def unescape(pattern: str) -> str:
    """`pattern` with its backslashes taken away: the name that an escaped pattern means."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL) if "\\" in pattern else pattern


@lru_cache(maxsize=1024)
def is_literal(pattern: str) -> bool:
    """Whether `pattern` holds no unescaped wildcard, so that it names one thing."""
    return not any(char in _GLOB for char in _unescaped(pattern))


def has_op(pattern: str) -> bool:
    """Whether `pattern` addresses an operation (`module/op`), not a module."""
    return "/" in pattern and "/" in _unescaped(pattern)


def before_op(pattern: str) -> str:
    """The module's part of a pattern that addresses an operation."""
    return re.match(r"(?:\\.|[^\\/])*", pattern, re.DOTALL)[0]  # type: ignore[index]


def _unescaped(pattern: str) -> str:
    return re.sub(r"\\.", "", pattern, flags=re.DOTALL)


@lru_cache(maxsize=1024)
def translate(pattern: str) -> re.Pattern[str]:
    """The regular expression that matches the names `pattern` means.

    Raises `PatternError` where a bracket or a brace is not closed.
    """
    return re.compile(_Reader(pattern).read(), re.DOTALL)


class _Reader:
    """Reads a glob from left to right and writes the regular expression for it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def read(self) -> str:
        return self._until(stop="") + r"\Z"

    def _until(self, stop: str) -> str:
        out: list[str] = []
        while self.position < len(self.pattern):
            char = self.pattern[self.position]
            if char in stop:
                break
            out.append(self._next(char))
        return "".join(out)

    def _next(self, char: str) -> str:
        if char == "*":
            return self._stars()
        self.position += 1
        if char == "\\":
            return self._escaped()
        if char == "?":
            return r"[^.]"
        if char == "[":
            return self._bracket()
        if char == "{":
            return self._braces()
        return re.escape(char)

    def _escaped(self) -> str:
        if self.position == len(self.pattern):
            raise self._error("a backslash at the end escapes nothing")
        self.position += 1
        return re.escape(self.pattern[self.position - 1])

    def _stars(self) -> str:
        start = self.position
        while self.pattern[self.position : self.position + 1] == "*":
            self.position += 1
        several = self.position - start > 1
        if several and self.pattern[self.position : self.position + 1] == ".":
            self.position += 1
            return r"(?:.*\.|(?<![^.]))"  # no segment at all, where one begins
        # A segment of its own is never empty: `layer4.**` is what lies below layer4, and neither
        # `*` nor `**` means the root.
        return rf"(?:{'.' if several else '[^.]'}+|(?<=[^.])|(?=[^.]))"

    def _bracket(self) -> str:
        match = _BRACKET.match(self.pattern, self.position)
        if match is None:
            raise self._error("'[' is not closed")
        self.position = match.end()
        body = "".join(self._range(*span.groups()) for span in _RANGE.finditer(match[2]))
        return f"[^.{body}]" if match[1] else f"[{body}]"

    def _range(self, first: str, last: str | None) -> str:
        low = unescape(first)
        if last is None:
            return re.escape(low)
        high = unescape(last)
        if low > high:
            raise self._error(f"the range {low}-{high} is empty: write {high}-{low}")
        return f"{re.escape(low)}-{re.escape(high)}"

    def _braces(self) -> str:
        options = []
        while True:
            options.append(self._until(stop=",}"))
            if self.position == len(self.pattern):
                raise self._error("'{' is not closed")
            self.position += 1
            if self.pattern[self.position - 1] == "}":
                return f"(?:{'|'.join(options)})"

    def _error(self, reason: str) -> PatternError:
        return PatternError(
            f"the pattern {self.pattern!r} cannot be read: {reason}. To mean one of the characters "
            f"* ? [ ] {{ }} / # itself, put a backslash before it: "
            f"{escape(unescape(self.pattern))!r}."
        )
