"""What is kept of a command: its options' names, and values that are known to be harmless."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from nethook.runs.secrets.harmless import KNOWN_TOKEN, is_harmless, is_readable
from nethook.runs.secrets.names import is_secret_name

MASK: Final = "***"
"""What stands in the place of a value that is not kept."""

_DEEPEST: Final = 10  # lists in lists
_LONGEST_OPTION: Final = 64
_OPTION: Final = re.compile(r"(--[A-Za-z0-9]|-[A-Za-z])[\w.-]*", re.ASCII)
# Of Hydra, and `NAME=value`.
_OVERRIDE: Final = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@-]*", re.ASCII)
_GLUED: Final = re.compile(r"(-[A-Za-z])([\d.].*)")  # -j8
_GLUED_SECRET: Final = re.compile(r"-p[\s\S]+")  # -pPASSWORD


def masked_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command, with `***` in the place of every value that may be a secret.

    Names of options stay. What follows an option with a secret-looking name is masked, whatever it
    is, up to the next option. Any other value stays if it is harmless (see `harmless.py`).
    """
    shown: list[str] = []
    after_secret = just_after = False
    for argument in arguments:
        # `--password -x`: a password may begin with a dash, `--password --lr 1` has none.
        if after_secret and (
            not argument.startswith("-") or (just_after and not argument.startswith("--"))
        ):
            shown.append(MASK)
            just_after = False
            continue
        text, after_secret = _masked(argument)
        just_after = after_secret
        shown.append(text)
    return shown


def _masked(argument: str) -> tuple[str, bool]:
    """What is shown of one argument, and whether the values of a secret follow."""
    if is_harmless(argument) or argument in ("-", "--"):
        return argument, False
    name, equals, value = argument.partition("=")
    if _GLUED_SECRET.fullmatch(argument) and not is_secret_name(name):  # but -pw is a name
        return f"-p{MASK}", False
    if not equals and (glued := _GLUED.fullmatch(argument)):
        return (argument if is_harmless(glued[2]) else f"{glued[1]}{MASK}"), False
    option = bool(_OPTION.fullmatch(name))
    if not (option or (equals and _OVERRIDE.fullmatch(name))) or not _is_name(name):
        return MASK, argument.startswith("--") and not equals  # an option that cannot be read
    if not equals:
        return argument, is_secret_name(name)
    if not option and not value.strip("="):  # the padding of base64
        return MASK, False
    kept = not is_secret_name(name) and (not value or is_harmless(value))
    return (argument if kept else f"{name}={MASK}"), False


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_OPTION and is_readable(name)


# -- texts ------------------------------------------------------------------------------------

_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*")
_URL_LOGIN: Final = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@]+@", re.IGNORECASE)
_WEBHOOK: Final = re.compile(
    r"(https?://(?:hooks\.[^\s/]+/|[^\s/]+/api/webhooks/|[^\s/]+/bot(?=\d)))[^\s'\"]+",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(r"\b(authorization|bearer)\b[^\n]*", re.IGNORECASE)
# `password=x`, `?sig=x`, `"api_key": "x"`; `--token x` and `'--token', 'x'`.
_NAMED: Final = re.compile(
    r"""(?<![\w.-])(?:(?P<name>[A-Za-z-][\w.-]{0,63}+)['"]?\s*+[=:]\s*+|"""
    r"""(?P<option>--?[A-Za-z][\w.-]{0,63}+)['"]?,?\s++(?!-))"""
)
_VALUE: Final = re.compile(r"""[rb]?(?:"[^"]*+"?|'[^']*+'?|[^\s,;&'")\]}]++)""")
_LONG: Final = re.compile(r"(?<![\w/.+-])[A-Za-z0-9+_=-]{32,}+(?![\w/.-])")


def masked_text(text: str) -> str:
    """A text, such as that of an error, without the secrets that can be told by name or by form.

    This cannot be an allow-list, as a text is mostly words.
    """
    text = _PRIVATE_KEY.sub(MASK, text)
    text = KNOWN_TOKEN.sub(MASK, text)
    text = _URL_LOGIN.sub(rf"\1{MASK}@", text)
    text = _WEBHOOK.sub(rf"\1{MASK}", text)
    text = _HEADER.sub(rf"\1 {MASK}", text)
    text = _without_named(text)
    return _LONG.sub(lambda match: match[0] if is_readable(match[0]) else MASK, text)


def _without_named(text: str) -> str:
    """A text without the values that stand behind secret-looking names."""
    kept, end = [], 0
    for match in _NAMED.finditer(text):
        if match.start() >= end and is_secret_name(match["name"] or match["option"]):
            value = _VALUE.match(text, match.end())
            if value is not None:
                kept += [text[end : match.end()], MASK]
                end = value.end()
    return "".join([*kept, text[end:]])


def masked_texts(data: object, secret: bool = False) -> object:
    """Plain data with `masked_text` in the place of each text, and no texts under secret names.

    Arguments:
        data: the data.
        secret: whether it stands under a secret name.
    """
    if isinstance(data, str):
        return MASK if secret else masked_text(data)
    if isinstance(data, Mapping):
        return {
            key: masked_texts(value, secret or is_secret_name(str(key)))
            for key, value in data.items()
        }
    if isinstance(data, list | tuple):
        return [masked_texts(entry, secret) for entry in data]
    return data


def masked_setting(name: str, value: object, depth: int = 0, secret: bool = False) -> object:
    """A setting of somebody's object as plain data: numbers, harmless texts, and lists of these.

    Anything else is named by its type: its `repr` may hold whatever its author put in.

    Arguments:
        name: what it is called.
        value: the setting.
        depth: in how many lists and dicts it stands.
        secret: whether one of them has a secret name: nothing in it is kept then.
    """
    secret = secret or is_secret_name(name)
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [masked_setting(name, entry, depth + 1, secret) for entry in value]
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {
            str(key): masked_setting(str(key), entry, depth + 1, secret)
            for key, entry in value.items()
        }
    if value is None or isinstance(value, bool):
        return value
    if secret:
        return MASK
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return value if is_harmless(value) else MASK
    text = str(value)  # of a dtype, an enum
    return text if is_harmless(text) else type(value).__name__
