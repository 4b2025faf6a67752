"""How a run was configured, as far as its file says: options of the command, and its optimizers.

    settings_of(run.info)        # {"lr": "0.1", "seed": "3", "optimizer": "AdamW"}

A run is one of several that differ in nothing but their seed where `without_seed` of them is equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_MOST: Final = 60  # settings of one run
_LONGEST: Final = 120  # characters of one
_OPTION: Final = re.compile(r"--?([A-Za-z][\w.\-]*)(?:=(.*))?", re.DOTALL)
_ASSIGNED: Final = re.compile(r"([A-Za-z][\w.]*)=(.*)", re.DOTALL)  # as hydra and fire take them
_NUMBER: Final = re.compile(r"-\.?\d")
_SEED: Final = re.compile(r"(?:^|[._-])(?:random_?)?seed$|^rng$", re.IGNORECASE)
_OWN: Final = frozenset({"output_dir", "out", "to", "log_dir", "run_name", "name"})


def settings_of(info: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a run by name; the file may say anything."""
    found = command_settings(info.get("command"))
    optimizers = info.get("optimizers")
    if isinstance(optimizers, Mapping) and optimizers:
        kinds = dict.fromkeys(str(kind)[:_LONGEST] for kind in list(optimizers.values())[:8])
        found.setdefault("optimizer", ", ".join(kinds))
    git = info.get("git")
    commit = git.get("commit") if isinstance(git, Mapping) else None
    if isinstance(commit, str) and commit:
        found.setdefault("commit", commit[:10])
    return dict(list(found.items())[:_MOST])


def script_of(command: Any) -> str:
    """`train.py`, or the module behind `-m`; "" where the command does not say."""
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return ""
    words = command[2:] if command[1:2] == ["-m"] else command[1:]
    return re.split(r"[/\\]", words[0])[-1][:_LONGEST] if words else ""


def command_settings(command: Any) -> dict[str, str]:
    """`--lr 0.1 --seed=3 --amp model.width=64` as names with values; a bare option is `on`."""
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return {}
    found: dict[str, str] = {}
    waiting = ""
    for word in command[1:]:
        option = None if _NUMBER.match(word) else _OPTION.fullmatch(word)
        if option is not None:
            waiting = ""
            name, value = option[1].replace("-", "_"), option[2]
            found[name] = "on" if value is None else value[:_LONGEST]
            waiting = name if value is None else ""
        elif waiting:
            found[waiting], waiting = word[:_LONGEST], ""
        elif assigned := _ASSIGNED.fullmatch(word):
            found[assigned[1]] = assigned[2][:_LONGEST]
    return found


def is_seed(name: str) -> bool:
    """Whether a setting is the seed of the random numbers."""
    return _SEED.search(name) is not None


def without_seed(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What runs have in common that differ in their seed alone: all but seeds and places."""
    return tuple(
        sorted(
            (name, value)
            for name, value in settings.items()
            if not is_seed(name) and name not in _OWN
        )
    )
