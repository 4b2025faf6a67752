"""The last lines of a run: the verdict, what was not followed, what to type next, the path."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from nethook.errors import RunFileError
from nethook.running.detecting.following import Session
from nethook.running.runner import Outcome
from nethook.runs.format.texts import clean, clean_name
from nethook.runs.paths import rank_files
from nethook.text.paragraphs import PLAIN, Style, wrapped

_MOST: Final = 4
"""Runs that are shown one by one; a script may train a hundred."""


def closing_text(
    session: Session,
    outcome: Outcome,
    notes: Sequence[str] = (),
    *,
    style: Style = PLAIN,
    rows: int | None = None,
    quiet: bool = False,
) -> str:
    """Everything that is printed at the end of a run.

    Arguments:
        session: what followed the script.
        outcome: how the script ended.
        notes: more sentences, about other processes.
        style: colours and width.
        rows: of the terminal: findings that do not fit are folded; None for a log.
        quiet: whether the path alone is wanted.

    Returns:
        Lines, or "" where Python has said that there is no such script.
    """
    paths = written_files(session)
    if quiet:
        return f"{clean_name(str(paths[0]))}\n" if paths else ""
    if not paths and not outcome.found:
        return ""
    said = [line for note in (*session.notes, *notes) for line in wrapped(clean(note), style)]
    if not paths:
        lines = said if session.notes else [*_nothing(outcome, style), *said]
        return "\n".join([_rule(style), *lines]) + "\n"
    last = [*said, *_next(paths), clean_name(str(paths[0]))]
    # Besides the verdicts there are an empty line, the rule, and the prompt that comes afterwards.
    room = None if rows is None else (rows - len(last) - 3) // len(paths[:_MOST])
    lines = [_rule(style)]
    for path in paths[:_MOST]:
        if len(paths) > 1:
            lines.append(style("bold", f"run {clean_name(path.name)}"))
        lines += _verdict(path, outcome if path == paths[-1] else Outcome(), style, room)
    if len(paths) > _MOST:
        lines.append(f"and {len(paths) - _MOST} more runs beside them")
    return "\n".join([*lines, *last]) + "\n"


def written_files(session: Session) -> list[Path]:
    """The run files of this process and of those that it has started, the first one first.

    Files of ranks are one run: the file of its first rank stands for it.
    """
    watcher = session.watcher
    watched = list(watcher.paths) if watcher is not None else []
    others = set(watcher.left_alone) if watcher is not None else set()
    planned = Path(session.options.to)
    pattern = re.compile(
        rf"{re.escape(planned.stem)}(-\d+)?(\.rank\d+)?{re.escape(planned.suffix)}"
    )
    beside = planned.parent.iterdir() if planned.parent.is_dir() else ()
    candidates = [*watched, *(path for path in beside if pattern.fullmatch(path.name))]
    runs: dict[Path, Path] = {}
    for path in sorted(dict.fromkeys(candidates), key=lambda path: (len(path.name), path.name)):
        if path not in others and path.exists() and path.stat().st_mtime >= session.started - 1:
            main = path.with_name(re.sub(r"\.rank\d+$", "", path.stem) + path.suffix)
            runs.setdefault(main, next(iter(rank_files(path).values())))
    return list(runs.values())


def severities(session: Session) -> list[str]:
    """How severe the findings of the run are."""
    from nethook.runs.reading.run import open_run

    levels = []
    for path in written_files(session):
        try:
            with open_run(path) as run:
                levels += [str(finding.get("severity", "warning")) for finding in run.findings]
        except RunFileError:
            continue
    return levels


def _verdict(path: Path, outcome: Outcome, style: Style, rows: int | None) -> Iterable[str]:
    from nethook.running.verdict import verdict_lines
    from nethook.runs.reading.run import open_run

    try:
        with open_run(path) as run:
            return verdict_lines(
                run,
                style,
                error=clean(outcome.error),
                interrupted=outcome.interrupted,
                rows=rows,
            )
    except RunFileError as error:
        return wrapped(f"The run file cannot be read: {error}", style)


def _nothing(outcome: Outcome, style: Style) -> Iterable[str]:
    if outcome.interrupted:
        why = "interrupted: by Ctrl-C, before a model was trained"
    elif outcome.error:
        why = f"crashed: {clean(outcome.error)}, before a model was trained"
    elif "torch" not in sys.modules:
        why = "nothing recorded: the script did not import torch"
    else:
        why = "nothing recorded: no model was trained by calling it"
    return wrapped(why, style, "error" if outcome.error and not outcome.interrupted else "warning")


def _next(paths: Sequence[Path]) -> list[str]:
    """What to type now. A long path must stay whole, to be copied: these lines are not broken."""
    shown = clean_name(shlex.quote(_short(paths[0])))
    folder = clean_name(shlex.quote(_short(paths[0].parent)))
    commands = [f"diagnose {shown}", f"report {shown}", f"ui {shown if len(paths) < 2 else folder}"]
    return [
        f"{'next:' if not place else '     '} nethook {command}"
        for place, command in enumerate(commands)
    ]


def _short(path: Path) -> str:
    """The path as one would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _rule(style: Style) -> str:
    return style("bold", "── nethook ") + "─" * (style.width - 11)
