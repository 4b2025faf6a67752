r"""Globs over dotted names, read into regular expressions.

    *        any characters within one segment          conv*      conv1, conv_out
    **       any characters, across segments            **.conv*  conv1, layer1.0.conv2
    ?        one character within a segment             fc?       fc1
    [abc]    one of these; [!abc] one that is not       fc[12]    fc1, fc2
    {a,b}    either                                     {q,k}_proj
    \x       the character x itself                      a\*b      a*b

A glob is anchored: it matches whole names. `**.` stands for any number of leading segments, also
none; a closing `.**` stands for what lies below, not for the module itself.
"""

from __future__ import annotations

import re
from functools import lru_cache

from nethook.errors import PatternError

# What must be escaped in a name for it to mean itself. `/` and `#` belong to op addresses.
SPECIAL = frozenset("*?[]{}/#\\")
_GLOB = frozenset("*?[{")


def escape(name: str) -> str:
    """`name` as a pattern that matches only itself."""
    return "".join(f"\\{char}" if char in SPECIAL else char for char in name)


def unescape(pattern: str) -> str:
    """`pattern` with its backslashes taken away: the name that an escaped pattern means."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


@lru_cache(maxsize=1024)
def is_literal(pattern: str) -> bool:
    """Whether `pattern` holds no unescaped wildcard, so that it names one thing."""
    return not any(char in _GLOB for char in _unescaped(pattern))


def has_op(pattern: str) -> bool:
    """Whether `pattern` addresses an operation (`module/op`), not a module."""
    return "/" in pattern and "/" in _unescaped(pattern)


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
        self.at = 0

    def read(self) -> str:
        out = self._until(stop="")
        if self.at < len(self.pattern):
            raise self._error(f"unexpected {self.pattern[self.at]!r}")
        return out + r"\Z"

    def _until(self, stop: str) -> str:
        out: list[str] = []
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char in stop:
                break
            out.append(self._next(char))
        return "".join(out)

    def _next(self, char: str) -> str:
        if char == "*":
            return self._stars()
        self.at += 1
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
        if self.at == len(self.pattern):
            raise self._error("a backslash at the end escapes nothing")
        self.at += 1
        return re.escape(self.pattern[self.at - 1])

    def _stars(self) -> str:
        start = self.at
        while self.pattern[self.at : self.at + 1] == "*":
            self.at += 1
        if self.at - start == 1:
            return r"[^.]*"
        opens = start == 0 or self.pattern[start - 1] in ".{,"
        if opens and self.pattern[self.at : self.at + 1] == ".":
            self.at += 1
            return r"(?:.*\.)?"
        closes = self.at == len(self.pattern) or self.pattern[self.at] in ",}"
        # A segment of its own is never empty: `layer4.**` is what lies below layer4, and `**`
        # every module but the root.
        return r".+" if opens and closes else r".*"

    def _bracket(self) -> str:
        end = self.pattern.find("]", self.at + (self.pattern[self.at : self.at + 1] in ("!", "]")))
        if end <= self.at:
            raise self._error("'[' is not closed")
        body = self.pattern[self.at : end]
        self.at = end + 1
        negated = body.startswith("!")
        if negated:
            body = body[1:]
        if not body:
            raise self._error("'[]' matches nothing")
        ranges = "".join(_range_part(part) for part in re.findall(r".-.|.", body, re.DOTALL))
        return f"[^.{ranges}]" if negated else f"[{ranges}]"

    def _braces(self) -> str:
        options = []
        while True:
            options.append(self._until(stop=",}"))
            if self.at == len(self.pattern):
                raise self._error("'{' is not closed")
            self.at += 1
            if self.pattern[self.at - 1] == "}":
                return f"(?:{'|'.join(options)})"

    def _error(self, reason: str) -> PatternError:
        return PatternError(
            f"the pattern {self.pattern!r} cannot be read: {reason}. To mean one of the characters "
            f"* ? [ ] {{ }} / # itself, put a backslash before it: {escape(self.pattern)!r}."
        )


def _range_part(part: str) -> str:
    if len(part) == 3:
        first, last = part[0], part[2]
        if first > last:
            raise PatternError(f"the range [{part}] is empty: write [{last}-{first}].")
        return f"{re.escape(first)}-{re.escape(last)}"
    return re.escape(part)
