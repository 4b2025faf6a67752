"""Arguments and options that several commands share, and what a shell offers to complete them with.

Completing imports neither torch nor numpy: it has to answer while somebody is typing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

_MOST = 200  # names that are offered


def run_files(incomplete: str) -> list[str]:
    """Run files whose path begins so, those in `runs` included; the newest first."""
    return _files(incomplete, (".db",))


def report_files(incomplete: str) -> list[str]:
    """The same, and saved studies."""
    return _files(incomplete, (".db", ".json"))


def _files(incomplete: str, suffixes: tuple[str, ...]) -> list[str]:
    typed = Path(incomplete)
    folder = typed if incomplete.endswith("/") or not incomplete else typed.parent
    found = [path for path in _listed(folder) if path.suffix in suffixes or path.is_dir()]
    if not incomplete or "runs/".startswith(incomplete):
        found += [path for path in _listed(Path("runs")) if path.suffix in suffixes]
    offered = [f"{path}/" if path.is_dir() else str(path) for path in sorted(found, key=_newest)]
    return [name for name in dict.fromkeys(offered) if name.startswith(incomplete)][:_MOST]


def one_of(*words: str) -> Callable[[str], list[str]]:
    """A completion from a few words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _listed(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return []


def _newest(path: Path) -> tuple[bool, float]:
    try:
        return path.is_dir(), -path.stat().st_mtime
    except OSError:
        return True, 0.0


def local_run(text: str) -> Path:
    """A path as it was typed; of an address in an object store, the local copy."""
    if "://" not in text:  # nothing is imported to find that out
        return Path(text)
    from nethook.runs.stores import fetched

    return _copied(fetched, text)


def local_runs(text: str) -> Path:
    """The same; the address may also be that of a folder of runs."""
    if "://" not in text:
        return Path(text)
    from nethook.runs.stores import fetched_runs

    return _copied(fetched_runs, text)


def _copied(copy: Callable[[str], Path], address: str) -> Path:
    from nethook.errors import NethookError

    try:
        return copy(address)
    except NethookError as error:
        raise typer.BadParameter(str(error)) from None


RunFile = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="The run file, or its address in an object store.",
        show_default=False, autocompletion=run_files, parser=local_run,
    ),
]  # fmt: skip
RunFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...", help="The run files, or their addresses in an object store.",
        show_default=False, autocompletion=run_files,
    ),
]  # fmt: skip
OlderTo = Annotated[
    Path | None,
    typer.Option("--output", "-o", hidden=True),  # what `--to` was called in 0.1
]
