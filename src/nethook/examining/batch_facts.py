"""What is known of the batches of a run when one of them is examined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import tensors
from nethook.addresses.paths import Path


@dataclass(frozen=True, slots=True)
class LoaderFacts:
    """A `DataLoader` that the batch came from.

    Attributes:
        batch_size: as it was made with; None where a batch sampler decides.
        collated: whether it puts samples together, so that rows of its batches are samples.
        shuffled: whether its sampler draws at random; None where that is not known.
        samples: in its data set; None where that does not say.
        within_reach: of these, how many its sampler can draw; None where that is not known.
    """

    batch_size: int | None
    collated: bool
    shuffled: bool | None = None
    samples: int | None = None
    within_reach: int | None = None


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The batches so far, this one included.

    Attributes:
        sizes: the first dimension of the first input with one, of each training call so far.
        repeats: whether all of them were the same, bit for bit; None after only one.
        loader: of the data loader whose last batch is this one, if there is one.
        size: the first dimension that the inputs have in common; 0 where they have none.
        tokens: paths of inputs that are whole numbers in two dimensions or more.
        calls: calls of watched models before this backward pass, this one included.
    """

    sizes: tuple[int, ...] = ()
    repeats: bool | None = None
    loader: LoaderFacts | None = None
    size: int = 0
    tokens: tuple[Path, ...] = ()
    calls: int = 1

    @property
    def batch_dim(self) -> int | None:
        """The dimension that counts samples, where that is known; else None."""
        return 0 if self.size > 0 else None

    @property
    def rows_are_samples(self) -> bool:
        """Whether a loader shows that rows of the inputs are samples."""
        loader = self.loader
        return loader is not None and loader.collated and self.size > 0

    @property
    def changes_size(self) -> bool:
        """Whether batches differ in size by more than a smaller last one."""
        return len(set(self.sizes[:-1])) > 1


def facts_of(
    inputs: Inputs,
    sizes: tuple[int, ...] = (),
    repeats: bool | None = None,
    loader: LoaderFacts | None = None,
    calls: int = 1,
) -> BatchFacts:
    """The facts of a batch, with what was seen of those before it."""
    given = tensors((inputs.args, dict(inputs.kwargs)))
    return BatchFacts(
        sizes or (first_size(given),), repeats, loader, common_size(given),
        tuple(
            path
            for path, tensor in given
            if not tensor.is_floating_point()
            and not tensor.is_complex()
            and tensor.dtype is not torch.bool
            and tensor.dim() >= 2
        ),
        calls,
    )  # fmt: skip


def first_size(given: list[tuple[Path, torch.Tensor]]) -> int:
    """The first dimension of the first tensor that has one."""
    return next((tensor.size(0) for _, tensor in given if tensor.dim()), 0)


def common_size(given: list[tuple[Path, torch.Tensor]]) -> int:
    """The first dimension of all tensors, where it is the same; else 0."""
    lengths = {tensor.size(0) for _, tensor in given if tensor.dim()}
    return lengths.pop() if len(lengths) == 1 else 0


def loader_facts(sampler: Any, collated: bool, dataset: Any = None) -> LoaderFacts:
    """Of a `DataLoader`, from the sampler that says which samples are a batch."""
    batch_size = getattr(sampler, "batch_size", None)
    held = getattr(sampler, "sampler", sampler)
    inner = _drawn_by(sampler)
    shuffled: bool | None = None
    if isinstance(held, RandomSampler | SubsetRandomSampler | WeightedRandomSampler):
        shuffled = True
    elif isinstance(inner, SequentialSampler):
        shuffled = False
    samples = within_reach = None
    if isinstance(inner, RandomSampler | SequentialSampler):
        samples = _length(inner)
    elif isinstance(inner, WeightedRandomSampler):
        # It draws numbers below that of its weights, whatever else the data set holds.
        samples, within_reach = _length(dataset), _length(inner.weights)
    known = batch_size if isinstance(batch_size, int) else None
    return LoaderFacts(known, collated, shuffled, samples, within_reach)


def _drawn_by(sampler: Any) -> Any:
    """What draws the numbers of samples; None where a class of the script's own draws.

    That may draw anything: one that goes through batches may hold a sampler of groups.
    """
    batches = isinstance(sampler, BatchSampler) and _iterates_as(sampler, BatchSampler)
    inner = sampler.sampler if batches else sampler
    kinds = (RandomSampler, SequentialSampler, WeightedRandomSampler)
    return inner if any(_iterates_as(inner, kind) for kind in kinds) else None


def _iterates_as(sampler: Any, kind: type) -> bool:
    return getattr(type(sampler), "__iter__", None) is vars(kind)["__iter__"]


def _length(of: Any) -> int | None:
    try:
        return len(of)
    except (TypeError, NotImplementedError):
        return None
