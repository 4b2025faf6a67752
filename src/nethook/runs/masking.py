"""Secrets on a command line, masked before the command is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MASK: Final = "***"

# The name of an option (or of a Hydra-like override) whose value is nobody's business. `token`
# stands for itself only as the last word: --hf-token is a secret, --tokenizer and --max-tokens not.
_SECRET_NAME: Final = re.compile(
    r"(^|[-_.])(pass(word|wd|phrase)?|pwd|secrets?|credentials?|auth|bearer|"
    r"(api|access|private|secret|account|license|ssh|aws|wandb|signing|encryption)[-_.]?keys?|"
    r"key|token|cookie|dsn|connection[-_.]?string)$|"
    r"(password|passwd|secret|apikey|api[-_.]key|access[-_.]key|private[-_.]key|auth[-_.]?token)",
    re.IGNORECASE,
)
# Values that are secrets whatever they are called: tokens of known services, keys, and the
# credentials in a URL.
_SECRET_VALUE: Final = re.compile(
    r"\b(sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{16,}|"
    r"AKIA[0-9A-Z]{12,}|xox[abprs]-[\w-]{10,}|AIza[\w-]{20,}|"
    r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"
)
_URL_LOGIN: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_URL_QUERY: Final = re.compile(r"([?&]([\w.-]+)=)[^&\s#]+")
_LONG_RANDOM: Final = re.compile(r"^(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/_=-]{40,}$")
_HEADER: Final = re.compile(r"\b(authorization|bearer)\b", re.IGNORECASE)


def masked_command(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command, with `***` in the place of everything that looks secret."""
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        if hide_next and not argument.startswith("--"):
            shown.append(MASK)
            hide_next = False
            continue
        name, equals, value = argument.partition("=")
        secret = _is_secret_name(name)
        if (equals and secret) or (equals and _looks_secret(value)):
            shown.append(f"{name}={MASK}")
        else:
            shown.append(masked_text(argument))
        hide_next = not equals and secret and argument.startswith("-")
    return shown


def masked_text(text: str) -> str:
    """A text without the secrets that can be told by their looks."""
    if _looks_secret(text):
        return MASK
    text = _SECRET_VALUE.sub(MASK, text)
    text = _URL_LOGIN.sub(rf"\1{MASK}@", text)
    text = _URL_QUERY.sub(_mask_query, text)
    # `-H "Authorization: Basic …"`: what follows the word is the secret.
    if found := _HEADER.search(text):
        return f"{text[: found.end()]} {MASK}"
    return text


def _is_secret_name(name: str) -> bool:
    return bool(_SECRET_NAME.search(name.lstrip("-+~")))


def _looks_secret(value: str) -> bool:
    # Long and random-looking; but a path or a git revision (40 hex digits) is worth keeping.
    revision = re.fullmatch(r"[0-9a-f]{40}", value)
    return bool(_LONG_RANDOM.match(value)) and "/" not in value and not revision


def _mask_query(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}" if _is_secret_name(found[2]) else found[0]
