"""`nethook run [options] script.py [arguments …]`: a training script, unchanged, and its verdict.

Everything after the script's name is the script's. The command line is read with the standard
library alone: the script must find a process in which nothing was imported that it might bring
another version of, or set something for.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any, Final

from nethook.errors import RunFileError
from nethook.running.detecting.following import Session
from nethook.running.imports import keep_apart
from nethook.running.options import RunOptions
from nethook.running.program import Program
from nethook.running.runner import Outcome, run_program
from nethook.runs.launch import launch

SEVERITIES: Final = ("info", "warning", "error")
_WITH_VALUE: Final = (
    *("--to", "--step", "--name", "--budget", "--include", "--exclude", "--fail-on"),
    *("--try-steps", "--try-seconds", "--to-tracker"),
)

_HELP: Final = """\
Run a training script as `python` would, watch every model that it trains, and
print a verdict at the end. The script needs no change.

  nethook run train.py --epochs 3
  nethook run --to runs/first.db -m package.train --lr 0.1
  nethook run --to runs/first.db --resume -m package.train --lr 0.1
  torchrun --nproc-per-node 2 -m nethook run train.py
  python -X dev -W error -m nethook run train.py
"""


def main(arguments: Sequence[str]) -> None:
    """Run a script; `arguments` are what follows `nethook run`."""
    ours, rest = _split(list(arguments))
    options = parser().parse_args(ours)
    program = _program(rest)
    if program is None:
        parser().error("which script? Type `nethook run train.py`, or `-m` and a module.")
    if again := keep_apart(program.folder, sys.path):
        again(__name__).main(arguments)  # this module was imported before that
        return
    chosen = _chosen(options, program)
    from nethook.running.children import Children
    from nethook.running.detecting.watches import start_watching

    session = Session(chosen, start_watching)
    if options.ui:
        _start_page(chosen, show=options.open)
    children = Children(chosen, program)
    live = _live(session) if options.live else None
    trials = _trials(program, options) if options.try_fix else None
    closing = _Closing(session, options, children, live, trials)
    run_program(program, session, closing.show, code_of=closing.code if options.fail_on else None)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Nethook's own arguments, and the script with all of its."""
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if word == "--":
            return arguments[:index], arguments[index + 1 :]
        if word == "-" or word.startswith("-m") or not word.startswith("-"):
            break
        index += 2 if word in _WITH_VALUE else 1
    return arguments[:index], arguments[index:]


def _program(rest: list[str]) -> Program | None:
    if not rest or rest == ["-m"]:
        return None
    if rest[0] == "-m":
        return Program(rest[1], tuple(rest[2:]), module=True)
    if rest[0].startswith("-m") and len(rest[0]) > 2:  # -mpackage.train
        return Program(rest[0][2:], tuple(rest[1:]), module=True)
    return Program(rest[0], tuple(rest[1:]))


def parser() -> argparse.ArgumentParser:
    """What reads the options of nethook's own."""
    reader = argparse.ArgumentParser(
        prog="nethook run",
        usage="nethook run [options] (script.py | -m module) [its arguments …]",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = reader.add_argument
    add("--to", metavar="FILE", help="the run file (default: runs/SCRIPT-TIME.db)")
    add(
        "--resume",
        action="store_true",
        help="continue the run of --to, or the last run of this script with these arguments; "
        "if there is none yet, start one",
    )
    add(
        "--step",
        metavar="N",
        type=_step,
        help="with --resume: the step of the checkpoint that the script continues from (default: "
        "after the last recorded step)",
    )
    add(
        "--name",
        metavar="NAME",
        default="",
        help="the name of the run (default: that of the script)",
    )
    add(
        "--budget",
        metavar="FRACTION",
        type=_fraction,
        default=0.03,
        help="the fraction of the training time that watching may take: 0.03 (the default) or "
        "3%%; `none` measures everything in every step",
    )
    add(
        "--include",
        metavar="PATTERN",
        action="append",
        default=[],
        help="watch only these layers, such as 'encoder.**' (may be repeated)",
    )
    add(
        "--exclude",
        metavar="PATTERN",
        action="append",
        default=[],
        help="do not watch these layers (may be repeated)",
    )
    add(
        "--no-batches",
        action="store_true",
        help="store no batches; `nethook.replay` needs them to rerun a step with a NaN",
    )
    add(
        "--no-examine",
        action="store_true",
        help="run no experiments on copies of the model",
    )
    add(
        "--keep-args",
        action="store_true",
        help="record the script's arguments unchanged; without this option, values that "
        "may be secrets are recorded as ***",
    )
    add(
        "--fail-on",
        choices=SEVERITIES,
        help="exit with code 3 if there is a finding of this severity or above",
    )
    add(
        "--try-fix",
        action="store_true",
        help="run the script again for some steps, as it is and with fixes of what was found, in "
        "processes that can change nothing outside a scratch folder; show which fix helped",
    )
    add(
        "--try-steps",
        metavar="N",
        type=_count,
        default=200,
        help="with --try-fix: the steps of each trial (default: 200)",
    )
    add(
        "--try-seconds",
        metavar="SECONDS",
        type=_count,
        default=30,
        help="with --try-fix: the time of each trial, its start included (default: 30)",
    )
    add(
        "--to-tracker",
        metavar="NAMES",
        type=_trackers,
        default=(),
        help="send the numbers to these trackers as well, such as wandb or wandb,tensorboard:all; "
        "a run that the script has open there is used",
    )
    add("--ui", action="store_true", help="serve a web page that shows the run while it trains")
    add("--live", action="store_true", help="print a status line to standard error while it trains")
    add(
        "--open",
        action="store_true",
        help="write a report at the end and open it; with --ui, open the page at the start",
    )
    add("--quiet", action="store_true", help="print only the path of the run file at the end")
    return reader


def _step(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a step number; got {text!r}. Example: 5000.")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more; got {text!r}. Example: 100.")
    return int(text)


def _trackers(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _fraction(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        fraction = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        fraction = math.nan
    if not 0 < fraction <= 1:
        raise argparse.ArgumentTypeError(
            f"must be a fraction between 0 and 1; got {text!r}. Examples: 0.03, 3% or none."
        )
    return fraction


def _chosen(options: Any, program: Program) -> RunOptions:
    """The options as plain data, with a path that a change of folder does not change."""
    from nethook.running.paths import run_file

    if options.step is not None and not options.resume:
        parser().error("--step needs --resume.")
    if options.to_tracker:
        _check_trackers(options.to_tracker)
    try:
        to = run_file(
            options.to,
            options.name or program.title,
            resume=options.resume,
            arguments=program.args,
        )
    except RunFileError as error:  # one that exists, or a path that can never be written
        parser().error(str(error).replace("`to`", "--to"))
    return RunOptions(
        to=to,
        name=options.name or program.title,
        budget=options.budget,
        include=tuple(options.include),
        exclude=tuple(options.exclude),
        batches=0 if options.no_batches else 3,
        keep_args=options.keep_args,
        resume=options.resume,
        step=options.step,
        examine=not options.no_examine,
        sinks=options.to_tracker,
    )


def _check_trackers(names: Sequence[str]) -> None:
    """Ends here where a tracker is not known, or not installed; none is imported."""
    from nethook.errors import NethookError
    from nethook.sinks.known import check_name, split_name

    try:
        for name in names:
            check_name(split_name(name)[0])
    except NethookError as error:
        parser().error(str(error).replace("`sinks`", "--to-tracker"))


def _start_page(chosen: RunOptions, *, show: bool) -> None:
    """Serves the page from another process, before the script can see anything of it."""
    from nethook.running.live.page_process import missing, start_page

    if lacking := missing():
        parser().error(f"--ui: {lacking}")
    # Of the ranks that a launcher has started, the first serves it for all.
    if launch().rank == 0:
        start_page(chosen.to, show=show)


class _Closing:
    """What is said at the end, and the code that the process ends with."""

    def __init__(
        self, session: Session, options: Any, children: Any, live: Any, trials: Any = None
    ) -> None:
        self._session = session
        self._options = options
        self._children = children
        self._live = live
        self._trials = trials

    def code(self, outcome: Outcome) -> int | None:
        """3 where a finding is as severe as `--fail-on` says; None keeps the script's code."""
        from nethook.running.closing import severities

        limit = SEVERITIES.index(self._options.fail_on)
        levels = severities(self._session)
        return 3 if any(SEVERITIES.index(severity) >= limit for severity in levels) else None

    def show(self, outcome: Outcome) -> None:
        """Write the verdict to the process's own standard error."""
        from nethook.running.closing import closing_text

        if self._live is not None:
            self._live.stop()
        stream = sys.__stderr__
        # Of the ranks that a launcher has started, the first speaks for all.
        if stream is None or stream.closed or launch().rank != 0:
            return
        with _suppressed():
            if sys.stdout is not None:
                sys.stdout.flush()  # what the script printed comes before
        if self._trials is not None and not outcome.interrupted:
            with _suppressed():
                from nethook.running.trying.progress import try_at_end

                shown = None if self._options.quiet else stream
                try_at_end(self._session, self._trials, shown)
        with _suppressed():
            from nethook.text.terminal import screen_of, style_of

            screen = screen_of(stream)
            text = closing_text(
                self._session,
                outcome,
                self._children.notes(),
                style=style_of(stream),
                rows=None if screen is None else screen.rows,
                quiet=self._options.quiet,
            )
            # A bar that was never closed leaves the cursor on its line.
            apart = screen is not None and text and not self._options.quiet
            stream.write(f"\n{text}" if apart else text)
            stream.flush()
        if self._options.open and not self._options.ui:
            with _suppressed():
                _open_report(self._session)


def _trials(program: Program, options: Any) -> Any:
    """What trials need to know of the script before it runs."""
    from nethook.running.trying.try_fixes import Trials

    return Trials(program, options.try_steps, options.try_seconds)


def _live(session: Session) -> Any:
    from nethook.running.live.status_line import StatusLine

    # Of the ranks that a launcher has started, the first speaks for all.
    if sys.__stderr__ is None or launch().rank != 0:
        return None
    return StatusLine(session, sys.__stderr__)


def _suppressed() -> Any:
    import contextlib

    # The script has ended; nothing of ours may change how.
    return contextlib.suppress(Exception)


def _open_report(session: Session) -> None:
    """Makes the report beside the run file and opens it, with nethook's own command."""
    import subprocess
    import webbrowser

    from nethook.running.closing import written_files

    paths = written_files(session)
    if not paths:
        return
    path = paths[0]
    report = path.with_suffix(".html")
    # -P: what lies in the folder that the script works in is not for nethook to import.
    command = [sys.executable, "-P", "-m", "nethook", "report", str(path), "--to", str(report)]
    if subprocess.run(command, check=False, stdout=sys.__stderr__).returncode == 0:
        webbrowser.open(report.as_uri())
