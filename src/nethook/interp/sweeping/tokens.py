"""Modules that treat each token by itself, computed only for the tokens that differ from the base.

A cell at one position leaves the tokens before it as they were, where a model is causal. What a
module that looks at one token at a time returns for these is what it returns for the base, and the
base is in the same run: its last copy has no change. So such a module is given the tokens of that
copy and those that differ from them, and no others.

Nobody declares which modules do: the first call of each form of module is tried on two copies, in
both ways. Forms are the same where class, attributes and shapes are, of a module and of all in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from typing import Any

import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.interp.sweeping.sites import Site
from nethook.torch_private import buffers_of, parameters_of, version_of

_MOST = 0.8  # of the tokens: with more to be computed, finding and placing them costs what is saved
_TRIES = 2  # calls of a module in a row in which nothing could be saved
_FEW = 4  # copies
_NOISE = 64  # times the precision of the numbers: what other kernels for other shapes may differ by
_MOST_NOISE = 0.02
_OF_TORCH = frozenset(vars(nn.Module()))
_PLAIN = (type(None), bool, int, float, str)

Run = Callable[[torch.Tensor], Any]


def worth_a_look(tree: Tree, sites: list[Site]) -> dict[str, nn.Module]:
    """Modules that multiply with matrices, and have no site inside; by address."""
    chosen: set[str] = set()
    around: set[str] = set()
    for address, module in zip(tree.addresses, tree.modules, strict=True):
        if any(each is not None and each.ndim > 1 for each in parameters_of(module).values()):
            chosen.update(_upwards(address))
    for site in sites:
        module_of, _, op = site.address.rpartition("/")
        around.update(_upwards(module_of) if op and site.is_op else _upwards(site.address)[1:])
    return {
        address: module
        for address, module in zip(tree.addresses, tree.modules, strict=True)
        if address in chosen and address not in around
    }


def _upwards(address: str) -> list[str]:
    """An address and those of the modules around it."""
    found = [address]
    while address:
        address = address.rpartition(".")[0]
        found.append(address)
    return found


class Found:
    """Which tokens differ, (copies, rows, tokens), and in which places these are."""

    def __init__(self, differs: torch.Tensor) -> None:
        self.differs = differs
        self.chosen = differs.flatten().nonzero().squeeze(1)

    @cached_property
    def come_from(self) -> torch.Tensor:
        """Where each token of each copy is among those that were chosen."""
        flat = self.differs.flatten()
        tokens, count = self.differs[-1].numel(), len(self.chosen)
        known = torch.arange(count - tokens, count, device=flat.device)
        return torch.where(flat, flat.cumsum(0) - 1, known.repeat(len(self.differs)))


class TokenByToken:
    """Calls of modules in runs of several copies of a base, the last of which has no change."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._able: dict[Hashable, bool] = {}  # by form
        self._forms: dict[int, Hashable] = {}
        self._in_vain: dict[int, int] = {}
        self._trying = False
        self._last: Found | None = None

    def may(self, args: tuple[Any, ...], kwargs: dict[str, Any], copies: int) -> bool:
        """Whether a call has the shape that is asked for: one value (copies of rows, tokens, d)."""
        return (
            not self._trying
            and copies >= _FEW
            and len(args) == 1
            and not kwargs
            and isinstance(args[0], torch.Tensor)
            and args[0].ndim == 3
            and args[0].shape[0] == copies * self._rows
            and args[0].shape[1] > 1
            and args[0].is_floating_point()
        )

    def computed(self, module: nn.Module, value: torch.Tensor, copies: int, run: Run) -> Any:
        """What a module returns for a value, by whichever way is shorter."""
        form = self._form(module)
        able = self._able.get(form)
        if able is False or self._in_vain.get(id(module), 0) >= _TRIES:
            return run(value)
        found = self._found(_differs(value.unflatten(0, (copies, self._rows))))
        if len(found.chosen) > _MOST * found.differs.numel():
            self._in_vain[id(module)] = self._in_vain.get(id(module), 0) + 1
            return run(value)
        self._in_vain[id(module)] = 0
        if able is None:
            self._able[form] = able = self._tried(value, found.differs, run)
        return _shorter(value, found, run) if able else run(value)

    def _found(self, differs: torch.Tensor) -> Found:
        """Which tokens are computed: mostly the same from one module to the next."""
        last = self._last
        if last is None or not _equal(last.differs, differs):
            self._last = last = Found(differs)
        return last

    def _form(self, module: nn.Module) -> Hashable:
        form = self._forms.get(id(module))
        if form is None:
            form = self._forms[id(module)] = tuple(_forms(module))
        return form

    def _tried(self, value: torch.Tensor, differs: torch.Tensor, run: Run) -> bool:
        """Whether both ways give the same for the base and a copy that is changed by half."""
        counts = differs[:-1].flatten(1).sum(1)
        half = int((counts - differs[0].numel() / 2).abs().argmin())
        pair = torch.stack([differs[half], differs[-1]])
        if not 0 < int(counts[half]) < differs[0].numel():
            return False
        two = value.unflatten(0, differs.shape[:2])[[half, -1]].flatten(0, 1)
        before = two.clone()
        self._trying = True
        try:
            expected = run(two)
            got = _shorter(before, Found(pair), run)
        except Exception:  # of a shape that it cannot have: it does not treat each token by itself
            return False
        finally:
            self._trying = False
        # One that writes to its argument may be relied upon to do so.
        written = not two.is_inference() and version_of(two) != version_of(before)
        return not written and _same(got, expected)


def _same(got: torch.Tensor, expected: Any) -> bool:
    """Whether a value is the expected one but for the noise of other kernels."""
    if not isinstance(expected, torch.Tensor) or got.shape != expected.shape:
        return False
    noise = min(_NOISE * torch.finfo(expected.dtype).eps, _MOST_NOISE)
    return bool((got - expected).abs().max() <= noise * expected.abs().max())


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.device == two.device and torch.equal(one, two)


def _differs(copies: torch.Tensor) -> torch.Tensor:
    """Which tokens are not those of the last copy, (copies, rows, tokens); all of that copy's."""
    size = copies.element_size()
    ends = copies.shape[-1] * size, int(copies.storage_offset()) * size
    if copies.is_contiguous() and not any(end % 8 for end in ends):
        copies = copies.view(torch.int64)  # bits: as many comparisons fewer
    unlike = copies != copies[-1]
    if unlike.shape[-1] % 8 == 0:
        unlike = unlike.view(torch.int64)
    differs = unlike.any(-1)
    differs[-1] = True
    return differs


def _shorter(value: torch.Tensor, found: Found, run: Run) -> torch.Tensor:
    """What a module returns for a value, from what it returns for the tokens that differ."""
    new: torch.Tensor = run(value.flatten(0, 1).index_select(0, found.chosen)[None])[0]
    whole: torch.Tensor = new.index_select(0, found.come_from).unflatten(0, value.shape[:2])
    return whole


def _forms(module: nn.Module) -> Iterator[Hashable]:
    """What the modules in a module are like: class, shapes of parameters, other attributes."""
    for name, part in module.named_modules():
        yield name, type(part)
        for key, tensor in (*parameters_of(part).items(), *buffers_of(part).items()):
            yield key, None if tensor is None else (tensor.shape, tensor.dtype)
        for key, value in vars(part).items():
            if key not in _OF_TORCH:
                yield key, value if isinstance(value, _PLAIN) else id(value)
