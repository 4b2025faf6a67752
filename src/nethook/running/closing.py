"""The last lines of a run: the verdict, what was not followed, what to type next, the path."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from nethook.errors import RunFileError
from nethook.running.following import Session
from nethook.running.runner import Outcome
from nethook.runs.format.texts import clean, clean_name
from nethook.runs.paths import rank_files

_MOST: Final = 4
"""Runs that are shown one by one; a script may train a hundred."""


def closing_text(
    session: Session,
    outcome: Outcome,
    notes: Sequence[str] = (),
    *,
    colour: bool = False,
    quiet: bool = False,
    commands: Collection[str] = (),
) -> str:
    """Everything that is printed at the end of a run.

    Arguments:
        session: what followed the script.
        outcome: how the script ended.
        notes: more sentences, about other processes.
        colour: whether colours can be shown.
        quiet: whether the path alone is wanted.
        commands: the commands of nethook that may be recommended.
    """
    paths = written_files(session)
    if quiet:
        return f"{clean_name(str(paths[0]))}\n" if paths else ""
    lines = [_rule()]
    for path in paths[:_MOST]:
        if len(paths) > 1:
            lines.append(f"run {clean_name(path.name)}")
        lines += _verdict(path, outcome if path == paths[-1] else Outcome(), colour)
    if len(paths) > _MOST:
        lines.append(f"and {len(paths) - _MOST} more runs beside them")
    if not paths and not session.notes:
        lines += _nothing(outcome)
    for note in (*session.notes, *notes):
        lines += _paragraph(clean(note))
    if not paths:
        return "\n".join(lines) + "\n"
    return "\n".join([*lines, *_next(paths[0], commands), clean_name(str(paths[0]))]) + "\n"


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


def _verdict(path: Path, outcome: Outcome, colour: bool) -> Iterable[str]:
    from nethook.running.verdict import verdict_lines
    from nethook.runs.reading.run import open_run
    from nethook.text.paragraphs import Style

    try:
        with open_run(path) as run:
            return verdict_lines(
                run,
                Style(colour),
                error=clean(outcome.error),
                interrupted=outcome.interrupted,
            )
    except RunFileError as error:
        return _paragraph(f"The run file cannot be read: {error}")


def _nothing(outcome: Outcome) -> Iterable[str]:
    if "torch" not in sys.modules:
        why = "The script did not import torch, so there was nothing to follow."
    elif outcome.error and not outcome.interrupted:
        why = f"The script ended with {clean(outcome.error)} before it had trained a model."
    else:
        why = "No model was trained by calling it, so nothing was recorded."
    return _paragraph(why)


def _next(path: Path, commands: Collection[str]) -> list[str]:
    shown = clean_name(shlex.quote(_short(path)))
    options = {
        "report": f"nethook report {shown} --to report.html",
        "diagnose": f"nethook diagnose {shown}",
    }
    recommended = [text for name, text in options.items() if name in commands]
    # A long path must stay whole, to be copied: these lines are not broken.
    return [f"next: {text}" for text in recommended] or [
        f"next: nethook.open_run({_short(path)!r})"
    ]


def _short(path: Path) -> str:
    """The path as one would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, 78, subsequent_indent="  ", break_on_hyphens=False)


def _rule() -> str:
    return "── nethook " + "─" * 67
