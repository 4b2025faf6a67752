"""Reading a run: `nethook.open_run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from nethook.errors import (
    NoSuchRunError,
    NoSuchSiteError,
    NotARunError,
    OptionError,
    RunFileError,
)
from nethook.files import exists, is_file, whole_path
from nethook.runs.format.owner import is_alive
from nethook.runs.format.schema import LEVELS, PHASES
from nethook.runs.format.texts import clean
from nethook.runs.paths import is_rank_file, rank_files, split_rank
from nethook.runs.reading.comparing.align import add_onto, common_axis, course_onto, merge_courses
from nethook.runs.reading.losses.curve import LossCurve, chosen_loss, curves_of
from nethook.runs.reading.losses.scalars import file_scalars, merged_scalars
from nethook.runs.reading.losses.shown import losses_in_words
from nethook.runs.reading.merge_ranks import OfRank, best_counts, is_root, part_in, together
from nethook.runs.reading.missing import no_run, not_beside
from nethook.runs.reading.open_files import OpenFiles
from nethook.runs.reading.rank_file import RankFile, SeriesInfo, Site
from nethook.runs.reading.results import (
    EventRecord,
    Findings,
    Histograms,
    Loss,
    Overview,
    Rank,
    Scalar,
    Series,
    Snapshot,
    Units,
)
from nethook.runs.reading.sampling import Ranks, chosen_ranks
from nethook.runs.reading.sessions import sessions_of
from nethook.runs.stores import local

_T = TypeVar("_T")

POINTS: Final = 256
"""Points of an overview, unless it is asked for another number: more than a chart can show."""


def open_run(path: str | Path, *, ranks: Ranks = "sample") -> Run:
    """Open a run file for reading, also while it is being written.

        run = nethook.open_run("runs/mnist.db")
        print(run)
        run.series("conv1", "outputs")["std"]        # numpy, one number per window
        run.quantiles("conv1", "outputs", q=0.99)
        run.scalars["val_accuracy"].value

    The files of other ranks (`NAME.rank{r}.db`) are found beside it and merged. Opening a file from
    a stranger is safe: it is data, is opened read-only, and is refused if it has anything in it
    that nethook does not write.

    Arguments:
        path: the file that `nethook.watch` wrote; of a run with several ranks, that of any rank. Or
            the address of one in an object store, such as `s3://bucket/mnist.db`.
        ranks: whose layers are merged: `"sample"` takes all of up to 16 ranks and 16 of more,
            `"all"` every one, or name them. Losses, norms, fingerprints, events and findings are
            always those of all ranks.

    Returns:
        A `Run`. What it gives is read when it is asked for, so it is always the newest.

    Raises:
        NoSuchRunError: there is no such file.
        NotARunError: the file is foreign, newer than this nethook, or damaged.
    """
    try:
        return Run(whole_path(local(path)), ranks=ranks)
    except OSError as error:
        if isinstance(error, RunFileError):
            raise
        raise RunFileError(f"{str(path)!r} cannot be opened: {error}.") from None


class Run:
    """A run that was, or is being, written. Made by `nethook.open_run`."""

    def __init__(self, path: Path, *, only: int | None = None, ranks: Ranks = "sample") -> None:
        self.path = path
        self._files: dict[int, RankFile] = {}
        open_files = OpenFiles()
        self._problems: dict[int, str] = {}
        files = rank_files(path)
        # A run whose rank 0 is missing is still a run; another rank's file was asked for by name.
        if not exists(path) and (is_rank_file(path) or not files):
            raise NoSuchRunError(no_run(path))
        for rank, file in files.items():
            if only is None or rank == only:
                try:
                    # What was named may be a link. What lies beside it was not asked for.
                    if file != path and not is_file(file, links=False):
                        raise NotARunError(not_beside(file))
                    self._files[rank] = RankFile(file, open_files)
                except RunFileError as error:
                    # What was asked for by name is an error; a broken neighbour is shown as such.
                    if file == path or len(files) == 1:
                        raise
                    self._problems[rank] = str(error)
        if not self._files:
            raise RunFileError("; ".join(self._problems.values()))
        self._only = only
        self._layers = {rank: self._files[rank] for rank in chosen_ranks(ranks, list(self._files))}

    # What ran

    @property
    def info(self) -> dict[str, Any]:
        """What ran: command, versions, devices, git revision, start and end, as plain data.

        `sessions` has a start, an end and the steps of every time that the run was gone on with.
        """
        private = ("layout", "writer", "beat")
        info = self._first.info()
        shown = {name: value for name, value in info.items() if name not in private}
        shown["sessions"] = sessions_of(info, self._first.last_step())
        if _state(info) == "open":
            shown["sessions"][-1]["ended"] = None
        return shown

    @property
    def world_size(self) -> int:
        """How many ranks the run has."""
        size = self._first.facts("world_size").get("world_size")
        present = max(self._files, default=0) + 1
        # A number from the file: no run has more ranks than machines have.
        return max(present, min(size, 1 << 16)) if isinstance(size, int) else present

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """Every rank of the run, with those that are missing."""
        size = self.world_size
        beyond = sorted(rank for rank in self._problems if rank >= size)
        # Put together by hand: of many ranks that are missing, paths would take seconds.
        name, suffix = split_rank(self._first.path)
        shown = []
        for rank in (*range(size), *beyond) if self._only is None else (self._only,):
            file = self._files.get(rank)
            if file is None:
                problem = self._problems.get(rank, "")
                state = "unreadable" if problem else "missing"
                missing = f"{name}.rank{rank}{suffix}" if rank else f"{name}{suffix}"
                shown.append(Rank(rank, missing, state, -1, problem))
            else:
                state = _state(file.facts("finished", "writer", "beat"))
                shown.append(Rank(rank, str(file.path), state, file.last_step()))
        return tuple(shown)

    @property
    def sampled(self) -> tuple[int, ...]:
        """The ranks whose layers are read: all of them, or some where there are many."""
        return tuple(self._layers)

    def rank(self, rank: int) -> Run:
        """The run as one rank saw it."""
        if rank not in self._files:
            raise NoSuchRunError(f"there is no readable file of rank {rank}: see `run.ranks`.")
        return Run(self._files[rank].path, only=rank)

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites of the model, in the order in which they were recorded."""
        return tuple(self._unique(lambda file: [(site.address, site) for site in file.sites()]))

    @property
    def catalogue(self) -> tuple[SeriesInfo, ...]:
        """Every series there is."""
        return tuple(
            self._unique(
                lambda file: [((info.address, info.quantity), info) for info in file.series()[0]]
            )
        )

    # Numbers

    def series(self, address: str, quantity: str = "outputs", phase: str = "train") -> Series:
        """One quantity of one site, window by window."""
        return self.many([(address, quantity)], phase)[0]

    def many(
        self,
        keys: Sequence[tuple[str, str]],
        phase: str = "train",
        *,
        between: tuple[int, int] | None = None,
    ) -> list[Series]:
        """Several series in one go: those whose records lie together are read once.

        `between` leaves all windows out that have no step from its first to its last.
        """
        _check_phase(phase)
        self._check_keys(keys)
        read = []
        several = self._only is None and self.world_size > 1
        for file in self._layers.values():
            ids = file.ids()
            present = [key for key in keys if key in ids]
            stored = file.rows(phase, [ids[key] for key in present], between)
            infos = file.series()[0] if several else ()
            parts = [part_in(infos[ids[key]].info) if infos else None for key in present]
            columns = {
                key: (column, part)
                for column, (key, part) in enumerate(zip(present, parts, strict=True))
            }
            read.append((columns, *stored))
        axis = common_axis([w.first_step for _, w, _ in read], [w.last_step for _, w, _ in read])
        steps = np.zeros(len(axis), dtype=np.int64)
        closed = np.ones(len(axis), dtype=bool)
        for (_, windows, _), indices in zip(read, axis.places, strict=True):
            np.maximum(steps, add_onto(len(axis), indices, windows.steps), out=steps)
            np.logical_and.at(closed, indices, windows.closed)
        ranks = self._expected([len(windows) for _, windows, _ in read], phase)
        series = []
        for key in keys:
            of_ranks = [
                OfRank(indices, numbers[:, columns[key][0]], columns[key][1])
                for (columns, _, numbers), indices in zip(read, axis.places, strict=True)
                if key in columns
            ]
            whole = together(len(axis), of_ranks, root=self._sharded and is_root(*key))
            times = ranks if whole.parts is None else whole.parts
            series.append(
                Series(
                    *key, phase, axis.first_step, axis.last_step, steps * times, whole.seen,
                    closed, whole.rows, times,
                )
            )  # fmt: skip
        return series

    def overview(
        self, *, quantity: str | None = None, phase: str = "train", points: int = POINTS
    ) -> Overview:
        """The course of all series, or those of one quantity, in about `points` points or fewer.

        It never reads more than some thousand records, however long the run.
        """
        _check_phase(phase)
        if points < 1:
            raise OptionError(f"`points` must be at least 1; got {points}.")
        keys = tuple(
            (info.address, info.quantity)
            for info in self.catalogue
            if quantity is None or info.quantity == quantity
        )
        if quantity is not None and not keys:
            raise NoSuchSiteError(self._no_quantity(quantity))
        read = []
        for file in self._layers.values():
            windows = file.windows(phase)
            count = int(windows.closed.sum())  # all but the last, which may be open
            widths = (1, *LEVELS)
            level = next(
                (index for index, w in enumerate(widths) if count // w <= points), len(LEVELS)
            )
            ids = file.ids()
            places = [index for index, key in enumerate(keys) if key in ids]
            parts, known_course = file.courses(
                phase, [ids[keys[index]] for index in places], count, level
            )
            course = known_course
            if len(places) < len(keys):  # another rank has series that this one does not know
                course = np.full(
                    (len(parts), len(keys), *known_course.shape[2:]), np.nan, known_course.dtype
                )
                course[:, places] = known_course
            first = windows.first_step[[begin for begin, _ in parts]]
            last = windows.last_step[[end - 1 for _, end in parts]]
            read.append((first, last, course))
        axis = common_axis([first for first, _, _ in read], [last for _, last, _ in read])
        merged = None
        for (_, _, course), indices in zip(read, axis.places, strict=True):
            aligned = course_onto(len(axis), indices, course) if len(read) > 1 else course
            if merged is None:
                merged = aligned
            else:
                merge_courses(merged, aligned)
        assert merged is not None  # there is at least one file
        return Overview(phase, keys, axis.first_step, axis.last_step, merged)

    def histograms(
        self, address: str, quantity: str = "outputs", phase: str = "train"
    ) -> Histograms:
        """The distribution of one quantity of one site over the run, in at most 256 spans."""
        spans, of_ranks = self._spans(address, quantity, phase, RankFile.histograms)
        counts = best_counts(
            [(add_onto(len(spans), indices, counts), part) for indices, counts, part in of_ranks]
        )
        return Histograms(address, quantity, phase, spans.first_step, spans.last_step, counts)

    def quantiles(
        self,
        address: str,
        quantity: str = "outputs",
        q: float | Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
        phase: str = "train",
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Quantiles within 9 %: (spans, quantiles)."""
        return self.histograms(address, quantity, phase).quantiles(q)

    def units(self, address: str, quantity: str = "outputs", phase: str = "train") -> Units:
        """Which units of a site were ever active, span by span."""
        spans, of_ranks = self._spans(address, quantity, phase, RankFile.unit_bits)
        active = np.zeros((len(spans), of_ranks[0][1].shape[1]), dtype=bool)
        for indices, bits, _ in of_ranks:
            np.logical_or.at(active, indices, bits)
        # A span in which the site was not measured has no histogram, and no bit that is set. Only
        # where none is set there is something to find out.
        measured = np.asarray(active.any(axis=1), dtype=np.bool_)
        if not measured.all():
            counts = self.histograms(address, quantity, phase).counts
            if len(counts) == len(spans):
                measured |= counts.any(axis=1)
        return Units(address, quantity, phase, spans.first_step, spans.last_step, active, measured)

    # Notes

    @property
    def scalars(self) -> Mapping[str, Scalar]:
        """What was logged, by name; losses are `LossCurve`s.

        Of several ranks: losses as the mean over them, and what else they have as the lowest of
        them has it.
        """
        return merged_scalars(list(self._files.values()), sharded=self._sharded)

    def scalars_by_rank(self, prefix: str) -> dict[str, dict[int, Scalar]]:
        """What each rank logged under names that begin with `prefix`: name -> rank -> points."""
        by_name: dict[str, dict[int, Scalar]] = {}
        for rank, file in self._files.items():
            for name, scalar in file_scalars(file, prefix).items():
                by_name.setdefault(name, {})[rank] = scalar
        return by_name

    def loss(self, name: str | None = None, phase: str = "train") -> LossCurve:
        """A loss as it went: every value, and its means over samples and over batches.

            run.loss().shown                       # of the only loss, step by step
            run.loss("train.py:42").between(1000, 1999).mean
            run.loss(phase="eval").shown[-1]       # of the last evaluation pass

        Arguments:
            name: the line at which it is made, as in `run.loss_curves()`; None for the only one.
            phase: `train` or `eval`.
        """
        return chosen_loss(self.loss_curves(phase), name, phase)

    def loss_curves(
        self, phase: str = "train", scalars: Mapping[str, Scalar] | None = None
    ) -> dict[str, LossCurve]:
        """Every loss of a phase, by name. `scalars` are those of the run, where they were read."""
        _check_phase(phase)
        return curves_of(self, self.scalars if scalars is None else scalars, phase)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """How losses were made, in the order of steps."""
        losses = [Loss(*row, rank) for rank, file in self._layers.items() for row in file.losses()]
        return tuple(sorted(losses, key=lambda loss: loss.step))

    @property
    def events(self) -> tuple[EventRecord, ...]:
        """What happened, in the order of steps."""
        events = [
            EventRecord(*row, rank) for rank, file in self._files.items() for row in file.events()
        ]
        return tuple(sorted(events, key=lambda event: event.step))

    @property
    def snapshots(self) -> Mapping[str, tuple[Snapshot, ...]]:
        """Outputs that were kept for a few samples, by site and in the order of steps."""
        by_site: dict[str, tuple[Snapshot, ...]] = {}
        for file in self._layers.values():
            for address in file.snapshot_sites():
                if address not in by_site:
                    kept = file.snapshots(address)
                    by_site[address] = tuple(Snapshot(address, *snapshot) for snapshot in kept)
        return by_site

    @property
    def findings(self) -> Findings:
        """What the doctor found while the run was written, as plain data."""
        findings: list[dict[str, Any]] = []
        for file in self._files.values():
            findings += [finding for finding in file.findings() if finding not in findings]
        return Findings(findings)

    def frame(self, library: str | None = None, phase: str = "train") -> Any:
        """Every series as one long data frame, of pandas or polars."""
        from nethook.runs.reading.frames import make_frame

        keys = [(info.address, info.quantity) for info in self.catalogue]
        columns: dict[str, list[Any]] = {}
        for series in self.many(keys, phase):
            mine = {
                "address": np.full(len(series), series.address),
                "quantity": np.full(len(series), series.quantity),
                **series.columns(),
            }
            for name, column in mine.items():
                columns.setdefault(name, []).append(column)
        return make_frame({name: np.concatenate(c) for name, c in columns.items()}, library)

    # Ends

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from nethook.runs.reading.show import windows_in_words

        ranks = self.ranks
        parts = []
        for phase in PHASES:
            windows = [file.windows(phase) for file in self._layers.values()]
            longest = max(windows, key=len)
            if len(longest):
                steps = max(int(of_rank.last_step[-1]) + 1 for of_rank in windows if len(of_rank))
                parts.append(windows_in_words(phase, len(longest), steps))
        parts = parts or ["no steps yet"]
        parts.append(f"{len(self.sites):,} sites, {len(self.catalogue):,} series")
        if len(ranks) > 1:
            gone = [str(rank.rank) for rank in ranks if rank.state in ("missing", "unreadable")]
            here = f"{len(ranks) - len(gone):,} of {len(ranks):,} ranks"
            shown = f"{', '.join(gone[:8])}{', …' if len(gone) > 8 else ''}"
            parts.append(f"{here} ({shown} missing)" if gone else here)
            if len(self._layers) < len(self._files):
                parts.append(f"layers of {len(self._layers):,} ranks")
        parts += losses_in_words(self)
        if findings := self.findings:
            parts.append(f"{len(findings):,} finding{'s' if len(findings) > 1 else ''}")
        states = {rank.state for rank in ranks}
        state = next(name for name in ("open", "died", "finished") if name in states)
        return f"<Run {clean(str(self.path))!r}: {state}, {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        from nethook.runs.reading.show import run_html

        return run_html(repr(self), self.info, self.findings, self.ranks)

    # Helpers

    @property
    def _first(self) -> RankFile:
        return self._files[min(self._files)]

    @property
    def _sharded(self) -> bool:
        """Whether each rank holds parts of the parameters only."""
        return len(self._files) > 1 and self._first.info().get("sharded") is True

    def _unique(self, entries: Callable[[RankFile], list[tuple[Any, _T]]]) -> Iterator[_T]:
        """What all files have, each entry once."""
        merged: dict[Any, _T] = {}
        for file in self._layers.values():
            for key, entry in entries(file):
                merged.setdefault(key, entry)
        yield from merged.values()

    def _expected(self, windows: Sequence[int], phase: str) -> int:
        """Ranks that should have measured: those that have this phase, and the missing ones.

        Evaluation on one rank only is usual, so there nobody is missed.
        """
        present = sum(count > 0 for count in windows)
        everyone = self._only is None and len(self._layers) == len(self._files)
        absent = self.world_size - len(self._files) if everyone else 0
        return max(1, present + (absent if phase == "train" else 0))

    def _spans(
        self, address: str, quantity: str, phase: str, read: Callable[..., Any]
    ) -> tuple[Any, list[tuple[Any, Any, tuple[int, int] | None]]]:
        """The common spans of all ranks; of each: where its spans belong, its data, its part."""
        _check_phase(phase)
        self._check_keys([(address, quantity)])
        firsts, lasts, held, parts = [], [], [], []
        for file in self._layers.values():
            ids = file.ids()
            if (address, quantity) in ids:
                numbers, spans = file.spans(phase)
                firsts.append(spans.first_step)
                lasts.append(spans.last_step)
                held.append(read(file, phase, ids[address, quantity], numbers))
                parts.append(part_in(file.series()[0][ids[address, quantity]].info))
        axis = common_axis(firsts, lasts)
        return axis, list(zip(axis.places, held, parts, strict=True))

    def _check_keys(self, keys: Sequence[tuple[str, str]]) -> None:
        rows = [file.ids() for file in self._layers.values()]
        if all(any(key in ids for ids in rows) for key in keys):
            return
        recorded = {(info.address, info.quantity) for info in self.catalogue}
        for address, quantity in keys:
            if (address, quantity) in recorded:
                continue
            quantities = sorted(q for a, q in recorded if a == address)
            if quantities:
                raise NoSuchSiteError(
                    f"of {address!r} the run has {', '.join(quantities)}, but no {quantity!r}."
                )
            addresses = list(dict.fromkeys(a for a, _ in recorded))
            close = get_close_matches(address, addresses, n=3)
            hint = f" Close to it: {', '.join(map(repr, close))}." if close else ""
            raise NoSuchSiteError(f"the run has no series of {address!r}.{hint}")

    def _no_quantity(self, quantity: str) -> str:
        quantities = sorted({info.quantity for info in self.catalogue})
        return f"the run has no {quantity!r}; it has {', '.join(quantities) or 'no series yet'}."


def _state(info: Mapping[str, Any]) -> str:
    """Whether a rank has finished, is still being written, or died on the way."""
    if info.get("finished"):
        return "finished"
    return "open" if is_alive(info.get("writer"), info.get("beat")) else "died"


def _check_phase(phase: str) -> None:
    if phase not in PHASES:
        raise OptionError(f"`phase` must be one of {', '.join(PHASES)}; got {phase!r}.")
