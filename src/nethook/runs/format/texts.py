"""Text that goes into a run file, and text that comes out of one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nethook.errors import NotARunError
from nethook.runs.format.schema import MAX_TEXT

_LONGEST: Final = 20_000  # characters of one text that is written; no address is as long

# What moves a terminal's cursor, hides text or turns its direction. Newlines are kept: messages
# may have several lines.
_CONTROL: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060"
    "\u2066-\u2069\ufeff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Text with every control character spelt out, so that showing it can do no harm."""
    if text.isprintable():  # nearly every text, and told at once
        return text
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def for_file(text: object) -> str:
    """Any text in a form that SQLite takes, cut where it is endless."""
    written = (
        str(text).encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\u0000")
    )
    return written if len(written) <= _LONGEST else written[:_LONGEST] + " …"


def to_json(value: object) -> str:
    """Plain data as JSON; what is not plain data becomes its text.

    NaN and Infinity are written as Python's json does: a NaN is often what a record is about.
    """
    text = json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":"))
    if len(text) <= MAX_TEXT // 2:
        return text
    return json.dumps({"too_long": f"{len(text):,} characters were not kept"})


def from_json(text: object) -> Any:
    """What a JSON text of the file says, with every text in it cleaned."""
    if text == "{}":  # said of nearly every series
        return {}
    try:
        return _cleaned(json.loads(_text(text)))
    except (ValueError, RecursionError) as error:
        raise NotARunError(f"a JSON text in the file cannot be read: {clean(str(error))}") from None


def from_file(value: object) -> str:
    """A text of the file, cleaned."""
    return clean(_text(value))


def name_from_file(value: object) -> str:
    """A name of the file: a text of one line."""
    return clean_name(_text(value))


def clean_name(name: str) -> str:
    """A name, or a path, that takes one line wherever it is shown."""
    return clean(name).replace("\n", "\\u000a")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise NotARunError(f"the file has {type(value).__name__} where a text belongs")
    return value


def _plain(value: object, depth: int = 0) -> object:
    if value is None or isinstance(value, bool | int | float):
        # A subclass (numpy's float64, an enum) is written as the number that it is.
        return value if type(value) in (bool, int, float, type(None)) else _number(value)
    if isinstance(value, str):
        return for_file(value)
    if depth < 20:
        if isinstance(value, Mapping):
            return {for_file(name): _plain(entry, depth + 1) for name, entry in value.items()}
        if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
            return [_plain(entry, depth + 1) for entry in value]
        if hasattr(value, "tolist"):  # an array, or a number of numpy's
            return _plain(value.tolist(), depth + 1)
    return for_file(value)


def _number(value: object) -> object:
    return float(value) if isinstance(value, float) else int(value)  # type: ignore[call-overload]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(entry) for entry in value]
    if isinstance(value, dict):
        return {clean(name): _cleaned(entry) for name, entry in value.items()}
    return value
