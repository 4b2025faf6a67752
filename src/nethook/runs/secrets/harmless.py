"""Values that may be kept of a command: numbers, names, paths that exist, and lists of these.

This is an allow-list. A secret has no form by which it could be told, so whatever is not known to
be harmless is not kept.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Final

LONGEST_NAME: Final = 32
"""Characters of a name; tokens and keys have more."""

_NUMBER: Final = re.compile(
    r"[-+]?(\d{1,15}|\d{1,3}(_\d{3}){1,4}|\d{0,15}\.\d{0,20})([eE][-+]?\d{1,4})?[%jL]?"
)
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.+-]*[A-Za-z0-9_+])?")
_DEVICE: Final = re.compile(r"(cuda|cpu|mps|xpu|hpu|npu|xla|tpu|meta):\d{1,3}")
_LONG_DIGITS: Final = re.compile(r"\d{5}")
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]{16,}")
# Tokens that begin as those of a known service do.
KNOWN_TOKEN: Final = re.compile(
    r"\b(sk-[\w-]{20,}|[sr]k_(live|test)_\w{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|"
    r"glpat-[\w-]{16,}|hf_[A-Za-z0-9]{30,}|(AKIA|ASIA)[0-9A-Z]{12,}|xox[abeprs]-[\w-]{10,}|"
    r"xapp-[\w-]{10,}|AIza[\w-]{20,}|ya29\.[\w-]{16,}|pypi-\w{16,}|npm_\w{20,}|"
    r"dckr_pat_[\w-]{16,}|dapi[0-9a-f]{16,}|nvapi-[\w-]{16,}|eyJ[\w-]{8,}(\.[\w-]*)*)"
)
# A longer name has to read like words, or it may be a token. Two in three pairs of neighbouring
# letters in English text are one of these; in random letters it is one in five.
_JUDGED_FROM: Final = 16
_PAIRS: Final = (
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve "
    "co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no "
    "ct us ac ot il tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts "
    "mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo "
    "sa ay ex ke fr oo"
)
_COMMON_PAIRS: Final = frozenset(_PAIRS.split())


def is_harmless(value: str) -> bool:
    """Whether a value may be kept: a number, a name, a relative path that exists, or a list."""
    return (
        is_plain(value)
        or exists_here(value)
        or all(is_plain(entry) for entry in _entries(value) or ["?"])
    )


def is_plain(value: str) -> bool:
    """Whether a text is a number, or a name such as `resnet50` or `bert-base-uncased`."""
    if _NUMBER.fullmatch(value) and any(map(str.isdigit, value)):
        return True
    if _DEVICE.fullmatch(value):
        return True
    return len(value) <= LONGEST_NAME and bool(_WORD.fullmatch(value)) and is_readable(value)


def is_readable(name: str) -> bool:
    """Whether a name is made of words and small numbers, as far as that can be told.

    Of random strings of 16 characters one in a hundred passes, and fewer the longer they are.
    """
    bare = re.sub(r"[^A-Za-z0-9]", "", name)
    if _LONG_DIGITS.search(name) or _HEXADECIMAL.fullmatch(bare) or KNOWN_TOKEN.search(name):
        return False
    if len(bare) < _JUDGED_FROM:
        return True
    usual = pairs = breaks = 0
    for run in re.findall(r"[A-Za-z0-9]+", name):
        for first, second in pairwise(run):
            pairs += 1
            digits = first.isdigit() + second.isdigit()
            usual += digits == 2 or (first + second).lower() in _COMMON_PAIRS
            breaks += digits == 1 or (first.islower() and second.isupper())
    letters = sum(map(str.isalpha, bare))
    return 2 * letters >= len(bare) and 2 * usual >= pairs and 3 * breaks <= len(bare)


def exists_here(value: str) -> bool:
    """Whether a text is a path, relative to the folder that the program is in, that exists."""
    if not value or value.startswith(("/", "\\", "~")):
        return False
    try:
        path = Path(value)
        return not path.is_absolute() and path.exists()
    except (OSError, ValueError):  # a name that no path can have
        return False


def _entries(value: str) -> list[str] | None:
    """The entries of `0.9,0.999` or `[2, 2, 6, 2]`; None where it is no list."""
    inside, brackets = value, value[:1] + value[-1:] in ("[]", "()")
    if brackets:
        inside = value[1:-1]
    entries = [entry.strip() for entry in inside.removesuffix(",").split(",")]
    if brackets:  # as in JSON
        entries = [entry[1:-1] if entry[:1] == entry[-1:] == '"' else entry for entry in entries]
    return entries if all(entries) else None
