"""Which run `nethook run --resume` goes on in, and whether it can be gone on with at all.

Asked before the script runs: what cannot be is an error on the command line, and not a surprise in
the middle of a training run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nethook.errors import RunFileError, RunInUseError
from nethook.runs.format.owner import is_alive
from nethook.runs.reading.taken import facts_of
from nethook.runs.secrets.masking import masked_arguments
from nethook.runs.stubs import is_stub

_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d"


def last_run(folder: Path, title: str, arguments: Sequence[str]) -> Path | None:
    """The last run of a script in a folder; None where there is none yet.

    Arguments:
        folder: where the runs are.
        title: the name of the script.
        arguments: those of the script; a run that had others may be another experiment.

    Raises:
        RunFileError: the last run had other arguments; the message says what to type.
    """
    pattern = re.compile(rf"{re.escape(title)}-{_TIME}\.db")
    beside = folder.iterdir() if folder.is_dir() else ()
    runs = [path for path in beside if pattern.fullmatch(path.name) and not is_stub(path)]
    if not runs:
        return None
    last = max(runs, key=lambda path: path.name).absolute()
    command = facts_of(last, "command").get("command")
    # The interpreter and the script come first, as they were found on the machine.
    had = command[2:] if isinstance(command, list) else []
    if had not in (masked_arguments(arguments), list(arguments)):  # masked, or kept whole
        shown = shlex.join(map(str, had)) or "no arguments"
        named = shlex.quote(str(Path(folder.name, last.name)))
        raise RunFileError(
            f"the last run of this script, {str(last)!r}, had other arguments ({shown}). To "
            f"continue it, name it: --resume --to {named}. For a new run, leave out --resume."
        )
    return last


def check_resumable(path: Path) -> None:
    """Refuse a file that is foreign, newer than this nethook, or that another process writes."""
    if not path.exists() or is_stub(path):
        return
    facts = facts_of(path, "writer", "beat", "finished")
    writer = facts.get("writer")
    if is_alive(writer, facts.get("beat")) and not facts.get("finished"):
        pid = writer.get("pid") if isinstance(writer, dict) else "?"
        raise RunInUseError(
            f"{str(path)!r} is in use: process {pid} is writing it; it can be continued later."
        )
