"""A spliced site: what its dictionary made of each call, and how its features are changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from nethook.editing.catalogue import Edit
from nethook.errors import OptionError, ReadError
from nethook.hooks.autograd.retain import keep_gradient
from nethook.interp.dictionaries.dictionary import Dictionary

Change = Callable[[torch.Tensor], torch.Tensor | None]


class SplicedSite:
    """The features of one site: `features`, `error`, `grad`, of the last call; `calls` has all."""

    def __init__(
        self, site: str, dictionary: Any, *, error: bool, grads: bool, reads_input: bool
    ) -> None:
        self.site = site
        self.calls: list[torch.Tensor] = []
        """The features of each call, as they were put in."""
        self.reads_input = reads_input
        self._dictionary = Dictionary(dictionary, site)
        if self._dictionary.skips and not error:
            raise OptionError(
                f"`error` must be True for the dictionary at {site!r}; got {error!r}. It adds its "
                "input beside its features (W_skip), which decoding leaves out."
            )
        self._with_error = error
        self._grads = grads
        self._changes: list[Change] = []
        self._errors: list[torch.Tensor] = []

    @property
    def features(self) -> torch.Tensor:
        """The features of the last call, (…, features)."""
        return self._last(self.calls)

    @property
    def error(self) -> torch.Tensor:
        """What the dictionary leaves out in the last call: the value minus its reconstruction."""
        return self._last(self._errors)

    @property
    def grad(self) -> torch.Tensor:
        """The gradient of the features of the last call, after backward()."""
        found = self.features.grad
        if found is None:
            raise ReadError(
                f"no gradient has reached the features at {self.site!r}: splice with grads=True "
                "and call backward()."
            )
        return found

    @property
    def l0(self) -> float:
        """How many features of a value are not zero, on average."""
        return float((self.features != 0).sum(-1).double().mean())

    def change(self, function: Change) -> None:
        """From now on features go through a function, or one of `nethook.edits`."""
        if isinstance(function, Edit) and (
            function.calls is not None or function.rows is not None
            or function.positions is not None or function.phase is not None
        ):  # fmt: skip
            raise OptionError(
                f"`function` must have no limits of its own; got {function!r}. Write a function "
                "that changes a part of the features."
            )
        if not callable(function):
            raise OptionError(f"`function` must be callable; got {type(function).__name__}.")
        self._changes.append(function)

    def set(self, units: int | Sequence[int], to: float) -> None:
        """From now on some features have this value everywhere."""
        chosen = [units] if isinstance(units, int) else list(units)

        def put(features: torch.Tensor) -> torch.Tensor:
            count = features.shape[-1]
            if not chosen or not all(-count <= unit < count for unit in chosen):
                raise OptionError(
                    f"`unit` must lie between 0 and {count - 1} at {self.site!r}; got {units!r}."
                )
            places = torch.tensor([unit % count for unit in chosen], device=features.device)
            return features.index_fill(-1, places, to)

        self._changes.append(put)

    def reset(self) -> None:
        """Features are no longer changed."""
        self._changes.clear()

    def forget(self) -> None:
        """Drops what was recorded."""
        self.calls.clear()
        self._errors.clear()

    def spliced(self, value: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """The new value; the same object where nothing is changed."""
        with torch.set_grad_enabled(self._grads or torch.is_grad_enabled()):
            features = self._dictionary.encode(read)
            if self._grads:
                if not features.requires_grad:
                    features = features.detach().requires_grad_()
                elif not features.is_leaf:
                    keep_gradient(features)
            rebuilt = self._decoded(features, value)
            self._errors.append((value - rebuilt).detach())
            new = features
            for change in self._changes:
                found = change(new)
                new = new if found is None else found
            if new.shape != features.shape:
                raise OptionError(
                    f"a change of features at {self.site!r} must keep their shape, "
                    f"{tuple(features.shape)}; got {tuple(new.shape)}."
                )
            self.calls.append(features if self._grads else new.detach())
            same = new is features
            if not self._with_error:
                return rebuilt if same else self._decoded(new, value)
            if self._grads:
                # The error is a constant; what is added is zero, and has the gradient.
                after = rebuilt if same else self._decoded(new, value)
                return value.detach() + (after - rebuilt.detach())
            return value if same else value + (self._decoded(new, value) - rebuilt)

    def figure(
        self, tokens: Sequence[str] | None = None, *, row: int = 0, top: int = 20,
        theme: str = "light",
    ) -> Any:  # fmt: skip
        """A Plotly figure of the strongest features of one row of the last call, by token."""
        from nethook.drawing.rendering.render import figure
        from nethook.drawing.studies.token_grid import token_grid

        shown = self.features.detach()[row].double().cpu()
        shown = shown[None] if shown.ndim == 1 else shown.flatten(0, -2)
        order = shown.abs().amax(0).argsort(descending=True, stable=True)[:top].flip(0)
        names = [str(n) for n in range(len(shown))] if tokens is None else list(tokens)
        if len(names) != len(shown):
            raise OptionError(
                f"`tokens` must have a text for each of the {len(shown)} tokens; got {len(names)}."
            )
        spec = token_grid(
            f"Features at {self.site}", [f"feature {int(unit)}" for unit in order], names,
            shown[:, order].T.numpy(), signed=bool((shown < 0).any()), unit="activation",
            axes=("feature", "token"),
        )  # fmt: skip
        return figure(spec, theme)

    def __repr__(self) -> str:
        if not self.calls:
            return f"<dictionary at {self.site!r}: not run yet>"
        return (
            f"<dictionary at {self.site!r}: {self.features.shape[-1]} features, "
            f"{self.l0:.3g} active, {len(self.calls)} calls>"
        )

    def _decoded(self, features: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        found = self._dictionary.decode(features)
        if found.shape != value.shape:
            raise OptionError(
                f"the dictionary at {self.site!r} must decode to the shape of the value, "
                f"{tuple(value.shape)}; got {tuple(found.shape)}."
            )
        return found.to(value.dtype)

    def _last(self, kept: list[torch.Tensor]) -> torch.Tensor:
        if not kept:
            raise ReadError(f"{self.site!r} has not run since the splice: call the model.")
        return kept[-1]
