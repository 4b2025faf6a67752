"""Going on in a run: with which step, with which model, and what the gap was."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nethook.errors import OtherModelError
from nethook.runs.names import RESUMED
from nethook.runs.reading.sessions import last_finished_step, sessions_of
from nethook.runs.writing.store import Event, Store

Model = Mapping[str, tuple[str, Sequence[int] | None]]
"""Address of each site -> its type, and of a parameter its shape."""

_COMPARED: Final = (
    *("command", "versions", "platform", "devices", "git", "watch", "models", "world_size"),
)
_MOST: Final = 6  # differences that a message names


def check_same_model(path: Path, kept: Mapping[str, tuple[str, Any]], model: Model) -> None:
    """Refuse to go on with a model whose sites or shapes differ from those that the run has."""
    if not kept:
        return  # it was cut off before its first step had ended
    said = []
    for address, (kind, shape) in model.items():
        shown = repr(address) if address else "the model"
        if address not in kept:
            said.append(f"{shown} is new")
            continue
        kept_kind, info = kept[address]
        had = info.get("shape") if isinstance(info, dict) else None
        if kind.removeprefix("FSDP") != kept_kind.removeprefix("FSDP"):  # spread over ranks, or not
            said.append(f"{shown} is {kind} and was {kept_kind}")
        elif shape is not None and had is not None and list(shape) != list(had):
            said.append(f"{shown} has shape {list(shape)} and had {list(had)}")
    said += [f"{address!r} is missing" for address in kept if address not in model]
    if not said:
        return
    more = f" (and {len(said) - _MOST} more)" if len(said) > _MOST else ""
    differences = f"{'; '.join(said[:_MOST])}{more}"
    error = OtherModelError(
        f"{str(path)!r} is the run of another model, which this one cannot continue: "
        f"{differences}. Record this model in a file of its own: "
        f"to={str(path.with_name('{time}.db'))!r}."
    )
    error.differences = differences
    raise error


def begin_session(
    store: Store, earlier: Mapping[str, Any], facts: Mapping[str, object], step: int | None
) -> int:
    """Keep the facts of the session that begins; the run is taken back to `step` where it is later.

    Arguments:
        store: of the run, claimed.
        earlier: the facts that it had; none for a new run.
        facts: those of this process.
        step: with which step it goes on; None for the one after the last that is kept.

    Returns:
        The step that this session begins with.
    """
    now = time.time()
    last = last_finished_step(earlier, store.last_step)
    first = last + 1 if step is None else step
    session: dict[str, Any] = {"started": now, "first_step": first}
    if not earlier:
        store.put_info({**facts, "started": now, "sessions": [session]})
        return first
    sessions = sessions_of(earlier, last)
    stopped = sessions[-1]["ended"]
    events = store.go_on_at(first, finished=last)
    session["changed"] = changed(earlier, facts)
    if first <= last:
        session["trained_again"] = [first, last]
    store.put_info(
        {**facts, "sessions": [*sessions, session], "unfinished_step": None, "clock": None}
    )
    data = {
        "session": len(sessions) + 1,
        "last_step": last,
        "kept_step": store.last_step,  # the last that has a window: none was split
        "first_step": first,
        "stopped": stopped,
        "went_on": now,
        "closed": sessions[-1]["closed"],
        "changed": session["changed"],
        "dropped_events": events,
    }
    message = _said(last, store.last_step, first, stopped, now, session["changed"])
    store.add_event(Event(first, now, RESUMED, "", message, data))
    return first


def changed(before: Mapping[str, Any], after: Mapping[str, object]) -> dict[str, list[Any]]:
    """What is not as it was: name -> what it was, and what it is."""
    changes: dict[str, list[Any]] = {}
    for name in _COMPARED:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, Mapping):
            for entry in dict.fromkeys((*old, *new)):
                if _plain(old.get(entry)) != _plain(new.get(entry)):
                    changes[f"{name}.{entry}"] = [old.get(entry), new.get(entry)]
        elif name in before and _plain(old) != _plain(new):
            changes[name] = [old, new]
    return changes


def _plain(value: object) -> object:
    """A value as it comes back from a file, where a tuple is a list."""
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _said(
    last: int, kept: int, first: int, stopped: object, now: float, differs: Mapping[str, Any]
) -> str:
    parts = [f"continued after step {last}" if last >= 0 else "continued before its first step"]
    if isinstance(stopped, int | float) and now - stopped >= 1:
        parts[0] += f", {_duration(now - stopped)} after it had stopped"
    if first <= last:
        parts.append(f"{_steps(first, last)} trained again; their earlier record was dropped")
        if kept + 1 < first:
            parts.append(f"{_steps(kept + 1, first - 1)} shared a window with these and went too")
    elif kept + 1 < first:
        parts.append(f"{_steps(kept + 1, first - 1)} not recorded")
    for name, (old, new) in differs.items():
        is_short = all(isinstance(value, str | int | float | None) for value in (old, new))
        parts.append(f"{name} {old} → {new}" if is_short else f"{name} changed")
    return "; ".join(parts)


def _steps(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    if hours < 1:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} days"
