"""What a run says of how it was started and set up, in words; and what differs there between two.

facts_in_words(run.info)          # {"optimizer": "AdamW", "model": "GPT, 162,053 parameters", …}
differing_facts(first, second)    # [("lr", "0.1", "0.01"), ("commit", "1f3c…", "8a90…"), …]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from nethook.runs.reading.losses.scalars import rate_name
from nethook.runs.reading.run import Run
from nethook.runs.reading.settings import command_settings

NOTHING: Final = "–"
"""What stands for a value that a run does not have."""
_MOST: Final = 50  # rows
_LONGEST: Final = 300  # characters of a value
_WORDS: Final = {
    "grads": "output gradients",
    "param_grads": "parameter gradients",
    "params": "parameters",
}
# What is told in words of its own, or is no fact of how a run was started.
_TOLD: Final = ("command", "git", "optimizers", "models", "watch", "versions", "devices")
_OWN: Final = frozenset(
    {
        *("started", "finished", "totals", "overhead", "memory", "ops", "rank", "platform", "name"),
        *("sessions", "cost", "diagnosis", "examined", "examination", "seen", "tried", "graph"),
        *("loaded", "losses", "launch", "clock", "ended", "evaluation_sizes", "loaders"),
    }
)


def facts_in_words(info: Mapping[str, Any]) -> dict[str, str]:
    """What ran, by name: command, code, versions, devices, optimizer, model, what was watched.

    Arguments:
        info: of a run; its file may say anything.
    """
    watch = info.get("watch")
    found = {
        "command": joined(info.get("command"), " "),
        **dict(_code(info.get("git"))),
        "versions": ", ".join(f"{name} {text}" for name, text in _entries(info.get("versions"))),
        "devices": joined(info.get("devices")),
        "platform": joined(info.get("platform")),
        "optimizer": _optimizers(info.get("optimizers")),
        "model": models_in_words(info.get("models")),
        "watched": "; ".join(text for _, text in _watched(watch)),
    }
    return {name: value[:_LONGEST] for name, value in found.items() if value}


def differing_facts(first: Run, second: Run) -> tuple[tuple[str, str, str], ...]:
    """What the two say of themselves that is not the same: configuration and code first."""
    infos = first.info, second.info
    options = [command_settings(info.get("command")) for info in infos]
    rows = _differing(options[0], options[1])
    scripts = [joined(info.get("command"), " ") for info in infos]
    if not rows and scripts[0] != scripts[1]:
        rows.append(("command", scripts[0] or NOTHING, scripts[1] or NOTHING))
    rows += _rates(first, second)
    rows += _set_up(_settings(first, infos[0]), _settings(second, infos[1]))
    rows += _differing(dict(_started(infos[0])), dict(_started(infos[1])))
    return tuple(rows[:_MOST])


def _started(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What ran, each fact by itself."""
    yield from _code(info.get("git"))
    yield "model", models_in_words(info.get("models"))
    yield "batches in a pass", _passes(info.get("loaders"))
    yield "devices", joined(info.get("devices"))
    for name, text in _entries(info.get("versions")):
        yield f"version of {name}", text
    yield from _watched(info.get("watch"))
    for name, value in info.items():  # facts that other programs write
        if name not in _OWN and name not in _TOLD and isinstance(value, str | int | float):
            yield name.replace("_", " "), str(value)


def _settings(run: Run, info: Mapping[str, Any]) -> dict[str, str]:
    """The optimizers and what they were given, but for rates, which may change."""
    found = {"optimizer": _optimizers(info.get("optimizers"))}
    known = _entries(info.get("optimizers"))
    for event in run.events:
        groups = event.data.get("groups") if event.kind == "groups" else None
        if not isinstance(groups, list):
            continue
        key = str(event.data.get("optimizer", ""))
        of = f"optimizer {key}: " if len(known) > 1 else ""
        for place, group in enumerate(groups):
            at = f"group {place}: " if len(groups) > 1 else ""
            for name, text in _entries(group):
                if name not in ("lr", "initial_lr"):  # they are compared step by step
                    found.setdefault(f"{of}{at}{name}", text)
    return found


def _set_up(mine: dict[str, str], theirs: dict[str, str]) -> list[tuple[str, str, str]]:
    """Optimizers and their settings; of optimizers of two kinds those that both have."""
    if mine["optimizer"] != theirs["optimizer"]:
        mine = {name: text for name, text in mine.items() if name in theirs}
        theirs = {name: text for name, text in theirs.items() if name in mine}
    return _differing(mine, theirs)


def _code(git: Any) -> list[tuple[str, str]]:
    return [(name, text) for name, text in _entries(git) if name in ("commit", "branch")]


def _optimizers(kinds: Any) -> str:
    """`AdamW`, or `generator: Adam, critic: SGD`."""
    known = _entries(kinds)
    return ", ".join(kind if name.isdecimal() else f"{name}: {kind}" for name, kind in known)


def models_in_words(models: Any) -> str:
    """`GPT, 162,053 parameters`; of several with their names."""
    shown = []
    for name, about in list(models.items())[:8] if isinstance(models, Mapping) else ():
        count = about.get("parameters") if isinstance(about, Mapping) else None
        kind = str(about.get("type", "") if isinstance(about, Mapping) else about)
        counted = f", {count:,} parameters" if isinstance(count, int) else ""
        shown.append(f"{name}: {kind}{counted}" if name and name != kind else f"{kind}{counted}")
    return "; ".join(shown)


def _passes(loaders: Any) -> str:
    """How many batches each loader has, from the most."""
    counts = {
        loader["batches"]
        for loader in (loaders if isinstance(loaders, list) else ())
        if isinstance(loader, Mapping) and isinstance(loader.get("batches"), int)
    }
    return ", ".join(f"{count:,}" for count in sorted(counts, reverse=True))


def _watched(watch: Any) -> list[tuple[str, str]]:
    """What was watched, and how: each part with a name for it."""
    if not isinstance(watch, Mapping):
        return []
    parts = []
    for name, label in (("quantities", "quantities"), ("phases", "phases")):
        if isinstance(given := watch.get(name), list):
            words = ", ".join(_WORDS.get(str(word), str(word)) for word in given)
            parts.append((label, words))
    budget = watch.get("budget", 0)
    if budget is None or (isinstance(budget, int | float) and budget > 0):
        said = "no budget" if budget is None else f"budget {100 * budget:.3g} %"
        parts.append(("budget of watching", said))
    more = [(name, joined(watch.get(name))) for name in ("include", "exclude", "snapshots")]
    return parts + [(name, f"{name} {text}") for name, text in more if text]


def _differing(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Names whose values are not the same, with both of them."""
    rows = []
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name) or NOTHING, theirs.get(name) or NOTHING
        if a != b:
            rows.append((name, a[:_LONGEST], b[:_LONGEST]))
    return rows


def _rates(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """Learning rates that are not the same, with the step at which they first are not."""
    differing = []
    mine, theirs = first.scalars, second.scalars
    for name in (name for name in mine if name.startswith("lr:") and name in theirs):
        a = dict(zip(mine[name].step.tolist(), mine[name].value.tolist(), strict=True))
        b = dict(zip(theirs[name].step.tolist(), theirs[name].value.tolist(), strict=True))
        # A rate holds until it changes, so each step of either has a value in both.
        one = two = np.nan
        for step in sorted({*a, *b}):
            one, two = a.get(step, one), b.get(step, two)
            if one != two and not (np.isnan(one) and np.isnan(two)):
                differing.append(
                    (f"{rate_name(name, mine)} at step {step:,}", f"{one:.6g}", f"{two:.6g}")
                )
                break
    return differing


def _entries(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, Mapping):
        return []
    return [(str(name), joined(entry)) for name, entry in list(value.items())[:100]]


def joined(value: Any, between: str = ", ") -> str:
    """Plain data in a line; "" for nothing."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return between.join(f"{name} {joined(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return between.join(joined(entry) for entry in value)
    return str(value)
