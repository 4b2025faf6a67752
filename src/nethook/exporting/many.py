"""Many runs as one folder of tables, with what tells the runs apart as columns.

Every table begins with `run`, `rank` and `revision`, and with one column `setting_NAME` for each
option that any of the runs had. So one query compares them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nethook.errors import OptionError
from nethook.exporting.folder import written_csv, written_parquet
from nethook.exporting.tables import Columns, tables
from nethook.runs.paths import is_rank_file, split_rank
from nethook.runs.reading.run import Run, open_run
from nethook.runs.reading.settings import settings_of
from nethook.runs.stores import local

WRITERS = {"csv": written_csv, "parquet": written_parquet}
"""Formats that can hold many runs -> what writes a table."""


def export_runs(
    runs: Sequence[str | Path], to: str, folder: str | Path, *, per_rank: bool = False
) -> list[Path]:
    """Write many runs as one folder of `csv` or `parquet` files.

    Arguments:
        runs: their paths, or their addresses in an object store. Of several files of one run, as
            `runs/*.db` names them, one is enough, and the others are left out.
        to: the format.
        folder: a folder that is new or empty.
        per_rank: each rank of a run by itself, in place of all ranks merged.

    Returns:
        The files that were written.
    """
    if to not in WRITERS:
        raise OptionError(f"`to` must be one of {', '.join(WRITERS)} for several runs; got {to!r}.")
    target = Path(folder).expanduser()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OptionError(
            f"`folder` must be new or empty; got {str(target)!r}, which exists. Name another one."
        )
    named = _each_once([str(run) for run in runs])
    labels = _labels(named)
    paths = [local(run) for run in named]
    settings = [_settings(path) for path in paths]
    names = sorted({name for of_run in settings for name in of_run})
    target.mkdir(parents=True, exist_ok=True)
    with open_run(paths[0]) as first:
        kinds = list(tables(first))
    written = []
    for kind in kinds:
        pieces = _pieces(kind, zip(paths, labels, settings, strict=True), names, per_rank)
        file = WRITERS[to](target / f"{kind}.{to}", pieces)
        if file is not None:
            written.append(file)
    return written


def _pieces(
    kind: str,
    runs: Iterable[tuple[Path, str, dict[str, str]]],
    names: Sequence[str],
    per_rank: bool,
) -> Iterator[Columns]:
    for path, label, settings in runs:
        with open_run(path) as run:
            for rank, part in _ranks(run, per_rank):
                revision = _revision(run)
                for piece in tables(part)[kind]:
                    length = len(next(iter(piece.values())))
                    if not length:
                        continue
                    own = piece.pop("rank", [rank] * length)
                    yield {
                        "run": [label] * length,
                        "rank": own,
                        "revision": [revision] * length,
                        **{f"setting_{name}": [settings.get(name)] * length for name in names},
                        **piece,
                    }


def _ranks(run: Run, per_rank: bool) -> Iterator[tuple[int | None, Run]]:
    """The run as a whole, whose rank is 0 or none in particular; or each rank of it."""
    if not per_rank:
        yield (0 if run.world_size == 1 else None), run
        return
    for rank in run.ranks:
        if rank.state not in ("missing", "unreadable"):
            with run.rank(rank.rank) as one:
                yield rank.rank, one


def _revision(run: Run) -> str | None:
    git = run.info.get("git")
    commit = git.get("commit") if isinstance(git, dict) else None
    return commit if isinstance(commit, str) else None


def _settings(path: Path) -> dict[str, str]:
    with open_run(path) as run:
        found: dict[str, Any] = settings_of(run.info)
    found.pop("commit", None)
    return found


def _each_once(runs: Sequence[str]) -> list[str]:
    """Without the files of further ranks: each of them opens the whole run."""
    seen = {split_rank(Path(run)) for run in runs if not is_rank_file(Path(run))}
    kept = []
    for run in runs:
        if is_rank_file(Path(run)):
            if split_rank(Path(run)) in seen:
                continue
            seen.add(split_rank(Path(run)))
        kept.append(run)
    return kept


def _labels(runs: Sequence[str]) -> list[str]:
    """Names of files where they differ, else paths as they were given."""
    stems = [Path(run).stem for run in runs]
    return stems if len(set(stems)) == len(stems) else list(runs)
