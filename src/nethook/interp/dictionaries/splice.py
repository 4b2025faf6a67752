"""`splice`: a dictionary of features in the place of a value, which by itself changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from nethook.addresses.inputs import as_inputs
from nethook.addresses.nested import replace, tensors
from nethook.drawing.data import Spec
from nethook.drawing.studies.causes import bars_spec
from nethook.editing.catalogue import zero
from nethook.editing.scope import EditScope, edit
from nethook.errors import NoSuchSiteError, OptionError, ResultError, ScopeError
from nethook.interp.dictionaries.site import SplicedSite
from nethook.interp.results.result import Result
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Recovered(Result):
    """The loss with dictionaries in the place of values, beside that of the model and of zeros."""

    _FORMAT: ClassVar[str] = "nethook_recovered"

    sites: tuple[str, ...]
    loss: float
    spliced: float
    zeroed: float
    seconds: float = 0.0

    @property
    def recovered(self) -> float:
        """(zeroed - spliced) / (zeroed - loss): 1 where nothing is lost, 0 where all is."""
        if self.zeroed == self.loss:
            raise ResultError("`recovered` is not defined: zeros have the same loss as the model.")
        return (self.zeroed - self.spliced) / (self.zeroed - self.loss)

    def spec(self) -> Spec:
        """The figure as plain data: the three losses as bars."""
        losses = np.array([self.loss, self.spliced, self.zeroed])
        title = f"Loss with dictionaries at {', '.join(self.sites)}"
        return bars_spec(title, ("the model", "dictionaries alone", "zeros"), losses, unit="loss")

    def table(self) -> Table:
        """The three losses."""
        rows = [("the model", f"{self.loss:.4g}"), ("dictionaries alone", f"{self.spliced:.4g}"),
                ("zeros", f"{self.zeroed:.4g}")]  # fmt: skip
        where = ", ".join(self.sites)
        share = "–" if self.zeroed == self.loss else f"{self.recovered:.4g}"
        return Table(f"loss recovered at {where}: {share}", ("run", "loss"), rows,
                     frozenset({"loss"}))  # fmt: skip


def splice(
    model: nn.Module,
    dictionaries: Mapping[str, Any] | None = None,
    *,
    transcoders: Mapping[str, Any] | None = None,
    error: bool = True,
    grads: bool = False,
) -> Splice:
    """Reads and changes the features of dictionaries (SAEs, transcoders) at sites of a model.

        with interp.splice(model, {"transformer.h.5": sae}) as s:
            model(tokens)
            s["transformer.h.5"].features                 # (rows, tokens, features)
            s.set("transformer.h.5", unit=123, to=8.0)    # from now on
            model(tokens)

    The value becomes `value + decode(new) - decode(features)`: what the dictionary does not explain
    stays, and where no feature is changed the run is the model's own, bit for bit.

    Arguments:
        model: any `nn.Module`.
        dictionaries: from the address of a module to what reads and rebuilds its output: anything
            with `encode` and `decode`.
        transcoders: the same, for what reads the module's input and rebuilds its output.
        error: False leaves out what a dictionary does not explain: the value is `decode(features)`.
        grads: features get a gradient (`s[site].grad` after backward), and the rest of the value is
            a constant: gradients go back through features alone.

    Returns:
        A scope: `s[site]` has features, error and gradient; `set`, `ablate` and `change` change
        features; `loss_recovered` says what a dictionary is worth.

    Cost: an encoding and a decoding per call of a site; a decoding more where features are changed.
    """
    return Splice(model, dictionaries or {}, transcoders or {}, error=error, grads=grads)


class Splice:
    """The scope of one `splice`."""

    def __init__(
        self, model: nn.Module, dictionaries: Mapping[str, Any], transcoders: Mapping[str, Any],
        *, error: bool, grads: bool,
    ) -> None:  # fmt: skip
        if not dictionaries and not transcoders:
            raise OptionError(
                "`dictionaries` must map an address to a dictionary; got none. Write "
                "interp.splice(model, {'h.5': sae})."
            )
        both = sorted(set(dictionaries) & set(transcoders))
        if both:
            raise OptionError(f"a site must have one dictionary; got two for {both[0]!r}.")
        self._model = model
        self._dictionaries = dict(dictionaries)
        self._transcoders = dict(transcoders)
        self._sites = self._made(error=error, grads=grads)
        self._scope: ExitStack | None = None

    def _made(self, *, error: bool, grads: bool) -> dict[str, SplicedSite]:
        given = [(self._dictionaries, False), (self._transcoders, True)]
        return {
            site: SplicedSite(site, each, error=error, grads=grads, reads_input=reads_input)
            for mapping, reads_input in given
            for site, each in mapping.items()
        }

    def __getitem__(self, site: str) -> SplicedSite:
        if site not in self._sites:
            raise NoSuchSiteError(
                f"no dictionary is at {site!r}; there are some at {', '.join(self._sites)}."
            )
        return self._sites[site]

    def set(self, site: str, unit: int | Sequence[int], to: float) -> None:
        """From now on, one or some features of a site have this value."""
        self[site].set(unit, to)

    def ablate(self, site: str, unit: int | Sequence[int]) -> None:
        """From now on, one or some features of a site are zero."""
        self[site].set(unit, 0.0)

    def change(self, site: str, function: Callable[[torch.Tensor], torch.Tensor | None]) -> None:
        """From now on, the features of a site go through a function or an edit."""
        self[site].change(function)

    def reset(self) -> None:
        """Features are no longer changed."""
        for each in self._sites.values():
            each.reset()

    def __enter__(self) -> Self:
        if self._scope is not None:
            raise ScopeError("this splice is open already.")
        for each in self._sites.values():
            each.forget()
        with ExitStack() as stack:
            stack.enter_context(_attached(self._model, self._sites))
            self._scope = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.__exit__(kind, error, traceback)

    def loss_recovered(self, inputs: Any, loss: Callable[[Any], Any]) -> Recovered:
        """How much of the loss dictionaries keep, without what they do not explain.

        Arguments:
            inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.
            loss: from the model's output to its loss: a number, or one per row.

        Three forwards: the model's own, one with `decode(features)` at every site, one with zeros.
        """
        started = time.perf_counter()
        given = as_inputs(inputs)
        alone = self._made(error=False, grads=False)

        def run() -> float:
            return float(torch.as_tensor(loss(own_inputs(given).call(self._model))).double().mean())

        with unchanged(self._model, given, evaluation=True), torch.no_grad():
            plain = run()
            with _attached(self._model, alone):
                spliced = run()
            with edit(self._model, outputs=dict.fromkeys(alone, _first(zero()))):
                zeroed = run()
        return Recovered(
            sites=tuple(alone), loss=plain, spliced=spliced, zeroed=zeroed,
            seconds=time.perf_counter() - started,
        )  # fmt: skip

    def __repr__(self) -> str:
        state = "open" if self._scope is not None else "not open"
        return f"<splice ({state}): {', '.join(map(repr, self._sites.values()))}>"


def _attached(model: nn.Module, sites: dict[str, SplicedSite]) -> EditScope:
    """A scope in which the values of sites go through their dictionaries."""
    inputs: dict[str, torch.Tensor] = {}

    def note(site: str) -> Callable[[Any], None]:
        def noted(value: Any) -> None:
            inputs[site] = tensors(value)[0][1]

        return noted

    def put(each: SplicedSite) -> Callable[[Any], Any]:
        def spliced(value: Any) -> Any:
            path, first = tensors(value)[0]
            read = inputs.pop(each.site) if each.reads_input else first
            new = each.spliced(first, read)
            return None if new is first else replace(value, path, new)

        return spliced

    reading = {name: note(name) for name, each in sites.items() if each.reads_input}
    return edit(
        model, outputs={name: put(each) for name, each in sites.items()}, inputs=reading or None
    )


def _first(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    def changed(value: Any) -> Any:
        path, first = tensors(value)[0]
        return replace(value, path, function(first))

    return changed
