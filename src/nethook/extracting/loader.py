"""Where batches come from, so that an extraction can begin in the middle.

The batches of a `DataLoader` over a data set with numbers are chosen by its sampler. The sampler is
followed here, which costs nothing: a batch that was done before is never loaded, and which sample
is in which row is known. What the sampler gave is folded into one running hash, `order`; when an
extraction goes on, the batches that are skipped must give the hash that was stored.
"""

from __future__ import annotations

import copy
import hashlib
import operator
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler

from nethook.errors import OptionError, ResumeError
from nethook.torch_private import ITERATOR_OF_LOADER


class Delivery(NamedTuple):
    """A batch, with the numbers of its samples in the data set, where they are known."""

    batch: Any
    numbers: list[int] | None
    order: str


class Source:
    """The batches of a loader. `samples` and `batches` count them, None where nobody knows."""

    numbered = False  # whether it knows which samples of the data set are in a batch
    samples: int | None = None
    batch_size: int | None = None

    def __init__(self, loader: Iterable[Any]) -> None:
        self._loader = loader
        self.batches = _length(loader)

    def iterate(self, skip: int, order: str) -> Iterator[Delivery]:
        """The batches after the first `skip`, which must have given the hash `order`."""
        if skip:
            raise ResumeError(
                f"{skip} batches are done, and this loader cannot be begun in the middle: "
                f"{self.why_not()} Extract into another folder, or from a DataLoader over a data "
                "set with __len__ and __getitem__."
            )
        for batch in self._loader:
            yield Delivery(batch, None, order)

    def why_not(self) -> str:
        """Why the loader cannot be begun in the middle."""
        if isinstance(self._loader, DataLoader):
            if isinstance(self._loader.dataset, IterableDataset):
                return "its data set is an IterableDataset, whose order nobody knows."
            return f"{type(self._loader).__name__} iterates in a way of its own."
        return f"a {type(self._loader).__name__} can only be iterated from its start."


class ListSource(Source):
    """Batches in a list: any of them can be had."""

    def __init__(self, loader: Sequence[Any]) -> None:
        super().__init__(loader)
        self._list = loader

    def iterate(self, skip: int, order: str) -> Iterator[Delivery]:
        """The batches after the first `skip`."""
        for number in range(skip, len(self._list)):
            yield Delivery(self._list[number], None, order)


class SampledSource(Source):
    """Batches that the sampler of a `DataLoader` chooses."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._sampled = loader
        self.samples = _length(loader.dataset)
        self.batch_size = loader.batch_size
        # Without a batch size each item of the data set is a batch, unless the sampler gives lists.
        self.numbered = loader.batch_sampler is not None

    def iterate(self, skip: int, order: str) -> Iterator[Delivery]:
        """The batches after the first `skip`, which must have given the hash `order`."""
        chosen = _Followed(self._sampled, skip, order)
        # A copy, not a new DataLoader: whatever else it was made with stays as it was.
        twin = copy.copy(self._sampled)
        inside = vars(twin)
        inside[ITERATOR_OF_LOADER] = None
        inside["in_order"] = True
        inside["sampler" if self._sampled.batch_sampler is None else "batch_sampler"] = chosen
        hashed = order
        for batch in twin:
            key = chosen.handed_out.popleft()
            hashed = fold(hashed, key)
            yield Delivery(batch, _numbers(key), hashed)
        if not chosen.skipped_all:
            raise chosen.too_short()


class _Followed:
    """A sampler that leaves out what was done, and remembers what it gave."""

    def __init__(self, loader: DataLoader[Any], skip: int, order: str) -> None:
        batched = loader.batch_sampler is not None
        self._sampler: Any = loader.batch_sampler if batched else loader.sampler
        self._loader = loader
        self._skip = skip
        self._order = order
        self.skipped_all = skip == 0
        self.handed_out: deque[Any] = deque()

    def __len__(self) -> int:
        return max(0, len(self._sampler) - self._skip)

    def __iter__(self) -> Iterator[Any]:
        hashed = ""
        for number, key in enumerate(self._sampler):
            if number < self._skip:
                hashed = fold(hashed, key)
                if number + 1 == self._skip:
                    if hashed != self._order:
                        raise ResumeError(self._other_order())
                    self.skipped_all = True
                continue
            self.handed_out.append(key)
            yield key

    def too_short(self) -> ResumeError:
        """The error for a loader that ended among the batches that are done."""
        return ResumeError(
            f"{self._skip} batches are done, and the loader has fewer: the data has changed."
        )

    def _other_order(self) -> str:
        said = (
            f"the loader gives the first {self._skip} batches, which are done, in another order "
            "now, so samples would be lost or doubled. "
        )
        sampler = getattr(self._sampler, "sampler", self._sampler)
        if isinstance(sampler, RandomSampler):
            return said + (
                "Its shuffling must be the same each time: pass the DataLoader generator="
                "torch.Generator().manual_seed(0), created again for every run; or do not shuffle, "
                "which features do not need."
            )
        return (
            said + f"Its sampler, a {type(sampler).__name__}, must give the same order each time."
        )


def find_source(loader: Iterable[Any], world: int) -> Source:
    """What a loader is, for extraction by `world` processes."""
    source = _source(loader)
    if world == 1:
        return source
    if not (isinstance(source, SampledSource) and source.numbered):
        raise OptionError(
            f"`loader` must be a DataLoader with a DistributedSampler where {world} processes "
            f"extract together; got {type(loader).__name__}. Its data set needs __len__ and "
            f"__getitem__. {source.why_not()}"
        )
    sampler = getattr(source._sampled.batch_sampler, "sampler", None)
    if isinstance(sampler, SequentialSampler | RandomSampler):
        raise OptionError(
            f"`loader` must give each of the {world} processes its own samples; got one that gives "
            "all samples to each of them. Pass the DataLoader "
            "sampler=torch.utils.data.DistributedSampler(dataset, shuffle=False)."
        )
    return source


def _source(loader: Iterable[Any]) -> Source:
    if isinstance(loader, DataLoader):
        as_usual = type(loader).__iter__ is DataLoader.__iter__
        if as_usual and not isinstance(loader.dataset, IterableDataset):
            return SampledSource(loader)
        return Source(loader)
    if isinstance(loader, torch.Tensor | str | dict) or not isinstance(loader, Iterable):
        raise OptionError(
            "`loader` must be a DataLoader or another iterable of batches; got "
            f"{type(loader).__name__}. For a single batch, write [batch]."
        )
    return ListSource(loader) if isinstance(loader, list | tuple) else Source(loader)


def fold(order: str, key: Any) -> str:
    """The running hash with one more key of the sampler's in it."""
    numbers = key.tolist() if isinstance(key, torch.Tensor) else key
    return hashlib.sha256(f"{order}{numbers!r}".encode()).hexdigest()


def _numbers(key: Any) -> list[int] | None:
    """The numbers of samples that a key of a sampler means, where it means numbers."""
    if not isinstance(key, list | tuple | torch.Tensor) or not len(key):
        return None
    try:
        return [operator.index(number) for number in key]
    except TypeError:
        return None


def _length(sized: Any) -> int | None:
    try:
        return len(sized)
    except (TypeError, NotImplementedError):
        return None
