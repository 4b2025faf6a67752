"""`nethook replay RUN`: the operation that made the first NaN of a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nethook.cli.exit import NO, errors_in_words
from nethook.cli.parameters import RunFile

if TYPE_CHECKING:
    from nethook.runs.reading.run import Run


def replay(
    run: RunFile,
    rerun: Annotated[
        bool,
        typer.Option("--rerun", help="Execute the recorded script again, in a run of its own."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the operation that made the first NaN or infinity of a run, and its line.

    It was found when it happened. --rerun executes the script once more, for a run in which it
    could not be: that is code, and runs as if you had typed it. The exit code is 0 if the run has
    no NaN or the operation is known, 1 if it is not, and 2 if the run cannot be read.
    """
    from nethook.runs.reading.run import open_run

    with errors_in_words("replay"):
        if rerun:
            run = _executed(run)
        with open_run(run) as opened:
            event = _first(opened)
    if as_json:
        typer.echo(json.dumps({"run": str(run), "non_finite": event}, indent=2))
    else:
        for line in _lines(event):
            typer.echo(line)
    if event is not None and not _made(event).get("operation"):
        raise typer.Exit(NO)


def _first(run: Run) -> dict[str, Any] | None:
    """The first NaN, as plain data."""
    from nethook.runs.names import NON_FINITE

    for event in run.events:
        if event.kind == NON_FINITE:
            return {"step": event.step, "message": event.message, **event.data}
    return None


def _made(event: Mapping[str, Any]) -> Mapping[str, Any]:
    replayed = event.get("replayed")
    return replayed if isinstance(replayed, Mapping) else {}


def _lines(event: Mapping[str, Any] | None) -> Iterator[str]:
    from nethook.text.escape import line
    from nethook.text.paragraphs import wrapped

    if event is None:
        yield "no NaN and no infinity was recorded in this run"
        return
    made = _made(event)
    yield from wrapped(line(event.get("message", "")))
    if not made.get("operation"):
        why = made.get("not_found") or "the operation was not looked for when it happened"
        yield from wrapped(line(f"operation: not known ({why})"))
        return
    yield from wrapped(line(f"operation: {made['operation']} ({made.get('case', '')})"))
    if made.get("source"):
        yield line(f"  at {made['source']}")  # whole, so that an editor can open it
    if made.get("reason"):
        yield from wrapped(line(f"reason: {made['reason']}"))
    for name, key in (("given", "inputs"), ("made", "output")):
        for described in made.get(key) or ():
            if isinstance(described, Mapping):
                yield from wrapped(line(f"{name}: {_range(described)}"))


def _range(described: Mapping[str, Any]) -> str:
    """As `nethook.replay` shows it, from what a file says."""
    text = f"{described.get('dtype', '')}{described.get('shape', '')}"
    low, high = described.get("min"), described.get("max")
    if isinstance(low, int | float) and isinstance(high, int | float) and low <= high:
        text += f", from {low:.4g} to {high:.4g}"
    for key, word in (("zeros", "zero"), ("nan", "NaN"), ("posinf", "+Inf"), ("neginf", "-Inf")):
        if isinstance(number := described.get(key), int) and number:
            text += f", {number:,} {word}"
    return text


def _executed(run: Path) -> Path:
    """Executes the script of a run again under `nethook run`; the new run."""
    import subprocess
    import sys

    from nethook.errors import OptionError
    from nethook.runs.reading.run import open_run
    from nethook.runs.secrets.masking import MASK

    with open_run(run) as opened:
        command = opened.info.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    if len(words) < 2 or not Path(words[1]).is_file():
        script = words[1] if len(words) > 1 else "none"
        raise OptionError(
            f"`--rerun` must find the script of the run from this folder; got {script!r}, which is "
            "not there. Change to the folder in which the script was started."
        )
    if any(MASK in word for word in words[2:]):
        raise OptionError(
            "`--rerun` must know all arguments of the script; got some that were masked in the run "
            f"({shlex.join(words[2:])}). Type it yourself: nethook run {words[1]} ..."
        )
    names = (f"{run.stem}-rerun{'' if n == 1 else f'-{n}'}{run.suffix}" for n in count(1))
    to = next(path for name in names if not (path := run.with_name(name)).exists())
    executed = [sys.executable, "-m", "nethook", "run", "--quiet", "--to", str(to), *words[1:]]
    typer.echo(f"nethook: executing {shlex.join(words[1:])} again, into {to}", err=True)
    done = subprocess.run(executed, check=False)
    if not to.exists():
        raise OptionError(f"The script ended with code {done.returncode} before it made a run.")
    return to
