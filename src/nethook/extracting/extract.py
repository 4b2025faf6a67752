"""`extract`: the features of a whole data set, on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nethook.errors import FeaturesExistError, InputsError, NethookError, OptionError, ResumeError
from nethook.extracting.batches import split_batch
from nethook.extracting.dataset import Features, load_features
from nethook.extracting.features import At, Reader
from nethook.extracting.fingerprint import describe_at, differences, fingerprint, named, ranks
from nethook.extracting.index import (
    INDEX,
    Index,
    join_parts,
    joined,
    make_folder,
    part_name,
    read_index,
    shard_name,
    write_index,
)
from nethook.extracting.loader import Source, find_source
from nethook.extracting.pooling import Mask, Pool
from nethook.extracting.progress import Bar
from nethook.extracting.shard_writer import Writer, alone, changed_since
from nethook.restoring.unchanged import model_unchanged, process_unchanged


@dataclass(frozen=True, slots=True)
class Extraction:
    """How an extraction went, in this process.

    `rows` were written by this process, of which `resumed` were there before; `complete` tells
    whether the index is written, which with several processes the last one does.
    """

    folder: Path
    rows: int
    resumed: int
    shards: int
    bytes: int
    complete: bool

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {**asdict(self), "folder": str(self.folder)}

    def load(self) -> Features:
        """The features, as `nethook.load_features` opens them."""
        return load_features(self.folder)


def extract(
    model: nn.Module,
    loader: Iterable[Any],
    at: At,
    to: str | Path,
    *,
    split: Callable[[Any], Any] | None = None,
    pool: Pool = None,
    mask: Mask = "attention_mask",
    call: int = 0,
    dtype: torch.dtype | None = None,
    transform: Callable[[torch.Tensor], torch.Tensor] | None = None,
    shard_mb: float = 256,
    resume: bool = True,
    progress: bool | None = None,
) -> Extraction:
    """Streams the features of a data set into a folder, with its labels and ids.

        nethook.extract(model, loader, at=["layer3", "avgpool"], to="features/")
        data = nethook.load_features("features/")

    Evaluation mode, no gradients, and a forward that ends at the last of the sites, as in
    `features`. If it is killed, the same call goes on where it stopped: batches that are done are
    skipped in the sampler, and no sample is lost or doubled. Row i of the result is sample i of
    the data set, in whatever order the loader went.

    Arguments:
        model: any `nn.Module`. Each module has the mode it had before, afterwards.
        loader: a `DataLoader`, a list of batches, or another iterable of them (which cannot be
            resumed). A batch is a tensor, `(inputs, labels)`, `(inputs, labels, ids)`, or a
            mapping with "labels" and "ids" among the inputs by name.
        at: which sites, as in `features`.
        to: the folder. One that holds another extraction is refused.
        split: a function from a batch to one of those forms, for batches of another form.
        pool, mask, call: as in `features`.
        dtype: the floating-point type to store features in.
        transform: a function applied to each tensor after pooling; it keeps the first dimension.
        shard_mb: how large a file becomes, in megabytes. This much memory is needed, whatever the
            length of the data. A file is also written every ten minutes.
        resume: False refuses a folder that holds features already.
        progress: shows a bar with rate and time left; None shows it on a terminal.

    With several processes (`torchrun`, or an initialised process group) each writes its own files,
    of the samples that its `DistributedSampler` gives it; the last one to end joins them, and
    samples that the sampler repeated are counted once. Nothing is sent between processes. Wait
    for all of them (`torch.distributed.barrier()`) before you load.

    Returns:
        An `Extraction`: how much there is, and `.load()`.

    Raises:
        ResumeError: where the folder was begun with another model, data set or set of sites, or
            the loader gives another order than it did.
        FeatureShapeError: where an output has not one row per sample, or rows differ in shape.

    Cost: the forwards, a copy of the features to the CPU, and writing them; weights are read once
    to recognise the model. `python benchmarks/extract.py` measures it.
    """
    if not shard_mb > 0:
        raise OptionError(f"`shard_mb` must be a positive number of megabytes; got {shard_mb!r}.")
    rank, world = ranks()
    folder = Path(to)
    source = find_source(loader, world)
    reader = Reader(model, at, pool=pool, mask=mask, call=call, transform=transform, dtype=dtype)
    setup = {
        "model": fingerprint(model),
        "at": describe_at(at, model),
        "samples": source.batches if source.samples is None else source.samples,
        "batch_size": source.batch_size,
        "world": world,
        "dtype": None if dtype is None else str(dtype),
        "pool": named(pool),
        "mask": named(mask),
        "call": call,
        "transform": named(transform),
        "split": named(split),
    }
    make_folder(folder)
    if not resume and _holds_features(folder, rank):
        raise FeaturesExistError(
            f"{str(folder)!r} holds features already, which are never overwritten. Continue them "
            "with resume=True, name another folder, or remove this one."
        )
    with alone(folder, rank, world):
        if (folder / INDEX).exists():
            return _finished(folder, setup, read_index(folder / INDEX))
        return _extract(source, reader, split, folder, rank, setup, shard_mb * 1e6, progress)


def _extract(
    source: Source, reader: Reader, split: Callable[[Any], Any] | None, folder: Path, rank: int,
    setup: dict[str, Any], shard_bytes: float, progress: bool | None,
) -> Extraction:  # fmt: skip
    writer = Writer(folder, rank, setup, shard_bytes)
    resumed = writer.rows
    if not (folder / part_name(rank)).exists():
        bar = Bar(source.batches, writer.batches, shown=progress if rank == 0 else False)
        try:
            with model_unchanged(reader.model, evaluation=True), bar:
                for delivery in source.iterate(writer.batches, writer.order):
                    if delivery.numbers is None and setup["world"] != 1:
                        raise InputsError(
                            "the sampler does not give the numbers of samples, so the parts of "
                            "several processes cannot be joined: use a DistributedSampler."
                        )
                    batch = split_batch(delivery.batch, split)
                    with process_unchanged(reader.model, batch.inputs):
                        features = reader.read(batch.inputs)
                    bar.advance(writer.add(features, batch, delivery))
                writer.flush()
                writer.settle()
        except NethookError:
            raise  # asked wrongly: nothing more is kept, so that it can be asked again
        except BaseException:
            with suppress(Exception):
                writer.flush()  # interrupted: what is done need not be done again
            raise
        finally:
            writer.close()
    complete = _conclude(folder, rank, setup, writer)
    size = sum(entry.bytes for entry in writer.entries)
    return Extraction(folder, writer.rows, resumed, len(writer.entries), size, complete)


def _conclude(folder: Path, rank: int, setup: dict[str, Any], writer: Writer) -> bool:
    """Writes the index, or the part of this process and, if it is the last one, the index."""
    entries = tuple(writer.entries)
    if setup["world"] == 1:
        if not entries:
            raise InputsError("the loader gave no batch: there is nothing to extract.")
        index: Index | None = joined(folder, setup, writer.kinds, entries)
    else:
        own = Index(setup, writer.kinds, entries, writer.rows, "stored")
        write_index(folder / part_name(rank), own)
        index = join_parts(folder)
    if index is None:
        return False
    write_index(folder / INDEX, index)
    return True


def _finished(folder: Path, setup: dict[str, Any], index: Index) -> Extraction:
    changed = differences(index.setup, setup)
    if changed:
        raise ResumeError(changed_since(changed))
    size = sum(entry.bytes for entry in index.shards)
    return Extraction(folder, index.rows, index.rows, len(index.shards), size, complete=True)


def _holds_features(folder: Path, rank: int) -> bool:
    return (folder / INDEX).exists() or (folder / shard_name(rank, 0)).exists()
