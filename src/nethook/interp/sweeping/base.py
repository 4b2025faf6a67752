"""The base run of a sweep: what it returned and called, and what may be done with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import tensors
from nethook.addresses.op_addresses import OpPattern
from nethook.addresses.tree import Tree
from nethook.editing.tokens import plain_tokens
from nethook.errors import SweepError
from nethook.interp.sweeping.answering import why_hooked, why_opaque
from nethook.interp.sweeping.batches import (
    COPIES,
    Dims,
    Layout,
    beside,
    beside_another,
    close,
    mapped_inputs,
    noise_of,
    repeated_inputs,
    row_dims,
    split_cells,
)
from nethook.interp.sweeping.cells import Cell, Over, cells_of, position_dim
from nethook.interp.sweeping.recording import Recording, record
from nethook.interp.sweeping.sites import Site, Wanted, found_sites
from nethook.interp.sweeping.start import SameStart
from nethook.restoring.randomness import devices_in_use

Metric = Callable[[Any], torch.Tensor]
MIXED: Final = "rows of a batch depend on each other"
_DIMS_OF_INPUTS = (0, 1)  # along which the rows of inputs may be
_FAR = 0.01  # of the base's metric: a source as far from it shows whether rows mix


@dataclass(frozen=True)
class Beside:
    """What the source gave in one batch with the base: all but the last bits are its own."""

    values: dict[str, list[torch.Tensor]]
    metric: torch.Tensor


class BaseRun:
    """One run of a model on the base, and a second one that shows how rows are laid out.

    In the second one the base stands between two copies of `source` where that has its shape, or
    else of itself with changes.
    """

    def __init__(
        self, model: nn.Module, tree: Tree, inputs: Inputs, metric: Metric, wanted: Wanted,
        source: Inputs | None = None,
    ) -> None:  # fmt: skip
        self.tree = tree
        self.model = model  # with its wrappers, which the tree looks through
        self.inputs = inputs
        self._metric = metric
        self._wanted = wanted
        self.start = SameStart(tree)
        self.whole = why_hooked(self.tree)
        kept = mapped_inputs(torch.clone, inputs)
        with self.start.observed(inputs):
            self.recording, once = self._recorded(inputs)
        self.seconds = once, once  # of the base alone, and between two others
        if self.start.writes_inputs:
            self.inputs = kept
        self.metric = self.checked(self.recording.output)
        self.noise = noise_of(self.recording.output)
        self.rows = len(self.metric)
        self.sites = found_sites(wanted, self.recording, inputs)
        self.layout = Layout()
        self.beside: Beside | None = None
        self.mixed = self._why_mixed(source)
        self.whole = self.whole or self._why_whole()
        for site in self.sites:
            site.batch = self._batch_of(site)

    # -- running ------------------------------------------------------------------------------

    def _recorded(self, inputs: Inputs) -> tuple[Recording, float]:
        self.start.again()
        inputs = self.start.fresh(inputs)
        begun = _now()
        recording = record(
            self.tree,
            lambda: inputs.call(self.model),
            self._wanted.ops,
            modules=self._wanted.recorded(self.tree),
            tokens_at=self._wanted.around if self._wanted.by_tokens else (),
            heads=self._wanted.heads,
        )
        return recording, _now() - begun

    def _run_of_several(self, inputs: Inputs) -> Recording:
        recording, took = self._recorded(inputs)
        self.seconds = self.seconds[0], took
        return recording

    def recorded(self, inputs: Inputs) -> Recording:
        """Another run, on other inputs, from the same state: what its sites returned."""
        self.start.again()
        ops = [OpPattern(site.address) for site in self.sites if site.is_op]
        modules = {site.address for site in self.sites}
        return record(
            self.tree, lambda: inputs.call(self.model), ops, modules=modules,
            heads=self._wanted.heads,
        )  # fmt: skip

    def repeated(self, copies: int) -> Inputs:
        """The inputs, so many times."""
        if copies == 1:
            return self.start.fresh(self.inputs)
        return repeated_inputs(self.inputs, self.rows, self.layout.inputs, copies)

    # -- numbers ------------------------------------------------------------------------------

    def checked(self, output: Any) -> torch.Tensor:
        """The metric of an output, on the CPU; an error where it is not one number per row."""
        numbers = self._metric(output)
        if not isinstance(numbers, torch.Tensor):
            raise SweepError(
                f"`metric` must return a tensor with one number per row; got "
                f"{type(numbers).__name__}."
            )
        if numbers.ndim != 1:
            what = "a single number" if not numbers.ndim else f"the shape {tuple(numbers.shape)}"
            raise SweepError(
                f"`metric` must return one number per row of the batch, a tensor of shape (rows,); "
                f"got {what}. Leave out the mean or sum over rows: statistics need every row."
            )
        if not len(numbers):
            raise SweepError("`base` must have at least one row; the metric of base is empty.")
        if not numbers.is_floating_point() or numbers.itemsize < 4:
            numbers = numbers.float()  # of halves, differences would be rounded
        return numbers.detach().cpu()

    def numbers(self, output: Any, copies: int) -> torch.Tensor:
        """The metric of a run of several copies, (copies, rows)."""
        if copies == 1:
            return self.checked(output)[None]
        if self.layout.output is None:  # the metric takes any number of rows
            return self.checked(output).reshape(copies, self.rows)
        parts = [split_cells(output, self.layout.output, n, self.rows) for n in range(copies)]
        return torch.stack([self.checked(part) for part in parts])

    # -- what may be done ---------------------------------------------------------------------

    def _why_whole(self) -> str:
        if self.start.draws:
            return "the model draws random numbers; every run begins with the same random state"
        if self.start.buffer:
            return f"the model writes to its buffer {self.start.buffer!r}"
        for site in self.sites:
            if len(site.called.ended) > 1:
                return f"{site.address!r} is called {len(site.called.ended)} times in a forward"
        if self.mixed:
            return self.mixed
        return why_opaque(self.recording, max(site.moment for site in self.sites))

    def _why_mixed(self, source: Inputs | None) -> str:
        """Why several copies cannot share a batch; "" where they can. Learns where rows are."""
        if self.start.draws or self.start.buffer:
            return "random numbers or written buffers differ between batches"
        why = ""
        for dim in _DIMS_OF_INPUTS:
            given = [t for _, t in tensors((self.inputs.args, dict(self.inputs.kwargs)))]
            if not any(t.ndim > dim and t.shape[dim] == self.rows for t in given):
                continue
            try:
                if source is not None and self._stands_beside(source, dim):
                    self.layout.inputs = dim
                    return ""
                several = self._run_of_several(beside_another(self.inputs, self.rows, dim))
                why, _ = self._read_rows(several)
            except SweepError:
                raise
            except Exception as error:  # of the model's or the metric's, for such a batch
                why = f"a batch of several copies failed ({type(error).__name__}: {error})"
            if not why:
                self.layout.inputs = dim
                return ""
        return why or f"no input has {self.rows} rows, as many as the metric has numbers"

    def _stands_beside(self, source: Inputs, dim: int) -> bool:
        """Whether the source could run in one batch with the base, and the base was the same."""
        joined = beside(self.inputs, source, self.rows, dim)
        if joined is None:
            return False
        several = self._run_of_several(joined)
        why, every = self._read_rows(several)
        if why or every is None:
            return False
        metric = every[: self.rows]
        # A source that is nearly the base would hardly show in it, even if rows were mixed.
        if not (metric - self.metric).abs().max() > _FAR * self.metric.abs().max():
            return False
        values: dict[str, list[torch.Tensor]] = {}
        for site in self.sites:
            if site.is_input:
                values[site.address] = [site.tensor((source.args, dict(source.kwargs)))]
                continue
            dims = self.layout.dims.get(site.address)
            if dims is None:
                return False
            paths = [path for path, _ in tensors(site.called.outputs[0])]
            batch = dims[paths.index(site.path)]
            all_of = [site.tensor(output) for output in several.calls[site.address].outputs]
            values[site.address] = [
                value if batch is None else value.narrow(batch, 0, self.rows) for value in all_of
            ]
        self.beside = Beside(values, metric)
        return True

    def _read_rows(self, several: Recording) -> tuple[str, torch.Tensor | None]:
        """Why rows cannot share a batch, and the metric of a batch of several copies."""
        self.layout.dims = {}
        for address, called in self.recording.calls.items():
            twin = several.calls.get(address)
            if twin is None or len(twin.outputs) != len(called.outputs):
                continue
            each = [row_dims(*pair) for pair in zip(called.outputs, twin.outputs, strict=True)]
            if all(dims is not None and dims == each[0] for dims in each):
                self.layout.dims[address] = each[0] or ()
        dims = row_dims(self.recording.output, several.output)
        every = self._every(several.output, dims)
        if every is None:
            return "the metric of a batch of several copies has another number of rows", None
        if not close(every[self.rows : 2 * self.rows], self.metric, self.noise):
            self.layout.dims = {}
            return MIXED, None
        return "", every

    def _every(self, output: Any, dims: Dims | None) -> torch.Tensor | None:
        """The metric of several copies: of all at once, or else of each by itself."""
        try:
            at_once = self.checked(output)
            if len(at_once) == COPIES * self.rows:
                self.layout.output = None
                return at_once
        except Exception:
            at_once = None
        if dims is None:
            return None
        self.layout.output = dims
        parts = [self.checked(split_cells(output, dims, n, self.rows)) for n in range(COPIES)]
        return torch.cat(parts) if all(len(part) == self.rows for part in parts) else None

    # -- sites --------------------------------------------------------------------------------

    def _batch_of(self, site: Site) -> int:
        value = site.values[0]
        if site.is_input:
            return self.layout.inputs
        dims = self.layout.dims.get(site.address)
        if dims is not None:
            paths = [path for path, _ in tensors(site.called.outputs[0])]
            dim = dims[paths.index(site.path)] if site.path in paths else None
            if dim is not None:
                return dim
            if not self.mixed:
                raise SweepError(
                    f"the value at {site.address!r} has no rows of the batch: its shape "
                    f"{tuple(value.shape)} is the same for more rows. Choose another site."
                )
        fits = [dim for dim in range(value.ndim) if value.shape[dim] == self.rows]
        return fits[0] if fits else 0

    def cells(self, over: Over, site: Site) -> list[Cell]:
        """The cells of a site."""
        value = site.values[0]
        tokens = site.called.tokens[0] if site.called.tokens else None
        if tokens is None:
            dim = (1 if site.batch == 0 else 0) if value.ndim > 1 else 0
            tokens = plain_tokens(value.shape[dim], value.device)
        if over == "positions":
            site.position_dim = position_dim(value, site.batch, tokens.length, site.address)
        return cells_of(over, value, site.batch, site.address, site.module, tokens)


def _now() -> float:
    """Seconds that this thread has computed; of work on other devices, seconds that went by."""
    return time.thread_time() if devices_in_use() is None else time.perf_counter()
