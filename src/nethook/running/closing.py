"""The last lines of a run: the verdict, what was not followed, what to type next, the path."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from nethook.errors import RunFileError
from nethook.running.runner import Outcome
from nethook.running.session import Session
from nethook.runs.paths import rank_files
from nethook.runs.texts import clean


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
    path = written_file(session)
    if quiet:
        return f"{path}\n" if path else ""
    lines = [_rule()]
    lines += _verdict(path, outcome, colour) if path else _nothing(outcome)
    for note in (*session.notes, *notes):
        lines += _paragraph(clean(note))
    if path is None:
        return "\n".join(lines) + "\n"
    lines += _next(path, commands)
    return "\n".join([*lines, clean(str(path))]) + "\n"


def written_file(session: Session) -> Path | None:
    """The run file: that of this process, or of the processes that it has started."""
    if session.watcher is not None and session.watcher.path.exists():
        return session.watcher.path
    planned = Path(session.options.to)
    found = list(rank_files(planned).values())
    return found[0] if found else None


def severities(session: Session) -> list[str]:
    """How severe the findings of the run are."""
    from nethook.runs.run import open_run

    path = written_file(session)
    if path is None:
        return []
    try:
        with open_run(path) as run:
            return [str(finding.get("severity", "warning")) for finding in run.findings]
    except RunFileError:
        return []


def _verdict(path: Path, outcome: Outcome, colour: bool) -> Iterable[str]:
    from nethook.running.verdict import Style, verdict_lines
    from nethook.runs.run import open_run

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
    import sys

    if "torch" not in sys.modules:
        why = "The script did not import torch, so there was nothing to follow."
    elif outcome.error and not outcome.interrupted:
        why = f"The script ended with {clean(outcome.error)} before it had trained a model."
    else:
        why = "No model was trained by calling it, so nothing was recorded."
    return _paragraph(why)


def _next(path: Path, commands: Collection[str]) -> list[str]:
    shown = shlex.quote(_short(path))
    options = {
        "report": f"nethook report {shown} -o report.html",
        "check": f"nethook check {shown}",
    }
    known = [text for name, text in options.items() if name in commands]
    # A long path must stay whole, to be copied: these lines are not broken.
    return [f"next: {text}" for text in known] or [f"next: nethook.open_run({_short(path)!r})"]


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
