"""Scopes of every kind, opened and closed in any order on odd models, also through exceptions.

A try draws a model of the zoo and a plan: scopes that are opened one by one, hooks of somebody
else's that are put on in between, one run of the model (with a bomb in it, or without), and
everything closed in an order of its own. The same plan without the scopes is the oracle: outputs,
gradients, states and the hook tables with their order are bit for bit the same. Then the cycle is
repeated on one model, and no object of nethook's stays from one repetition to the next.
"""

from __future__ import annotations

import contextlib
import gc
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import UninitializedTensorMixin

import nethook
from nethook.errors import NoSuchSiteError, UnfiredError
from tests.zoo import (
    EXHIBITS,
    PLACES,
    Bomb,
    Boom,
    Exhibit,
    Given,
    Scope,
    SilentBoom,
    assert_same,
    built,
    loss_of,
    modules_of,
    observe,
    quiet,
)

TITLE = "attach and detach cycles"
TRIES = 2000
SHORT = 12

REPEATS = 5
"""Cycles on one model; from the third on nothing may grow (before that, caches are filled)."""


def attempt(seed: int, folder: Path) -> None:
    """One model, one plan."""
    drawn = random.Random(seed)
    exhibit = drawn.choice(_usable())
    plan = Plan.drawn(drawn, exhibit, folder)
    bomb = _bomb(drawn, exhibit)
    inside = drawn.random() < 0.5
    gc.freeze()  # what was there before is not looked at: a collection takes a millisecond
    try:
        whole = [
            observe(
                exhibit,
                around=plan.without_scopes if bare else plan.carried_out,
                audit=_hooks_of,
                backward_inside=inside,
                bomb=bomb(),
                settle=gc.collect,  # a tape that nobody holds is asked for nothing
            )
            for bare in (True, False)
        ]
        assert_same(*whole, f"{exhibit.name}: {plan}")
        _does_not_grow(exhibit, plan, bomb)
    finally:
        gc.unfreeze()


@dataclass
class Opened:
    """A scope that is open: how to close it."""

    close: Callable[[BaseException | None], object]


@dataclass
class Plan:
    """What is done around one run of a model, in order."""

    steps: list[tuple[str, Any]]
    names: list[str]  # of modules that are hooked
    closing: list[int]  # which of what is on is taken off next
    error: type[BaseException] | None  # what the scopes are told when they are closed

    @classmethod
    def drawn(cls, drawn: random.Random, exhibit: Exhibit, folder: Path) -> Plan:
        names = _names(exhibit)
        chosen = drawn.sample(names, min(len(names), drawn.randint(1, 4)))
        steps: list[tuple[str, Any]] = []
        # What may change a value lets fused layers run one by one, with other last bits.
        fused = exhibit.name.startswith("encoder_fast_path")
        kinds = {kind: often for kind, (_, often) in _OPENERS.items()}
        if fused:
            del kinds["edit"], kinds["callbacks"]
        for _ in range(drawn.randint(1, 5)):
            (kind,) = drawn.choices(list(kinds), list(kinds.values()))
            steps.append((kind, drawn.random()))
            if drawn.random() < 0.4:
                steps.append(("user", (drawn.choice(chosen), drawn.random() < 0.3)))
            if drawn.random() < 0.2:
                steps.append(("close one", drawn.random()))
        closing = [drawn.randrange(1000) for _ in range(20)]
        error = drawn.choice([None, None, Boom, SilentBoom])
        plan = cls(steps, chosen, closing, error)
        plan.folder = folder
        return plan

    folder = Path()

    @contextmanager
    def without_scopes(self, model: nn.Module) -> Iterator[None]:
        """The hooks of others alone."""
        with self._around(model, scopes=False):
            yield

    @contextmanager
    def carried_out(self, model: nn.Module) -> Iterator[None]:
        """All of it."""
        with self._around(model, scopes=True):
            yield

    @contextmanager
    def _around(self, model: nn.Module, *, scopes: bool) -> Iterator[None]:
        opened: list[Opened] = []
        users: list[Any] = []
        try:
            for kind, detail in self.steps:
                if kind == "user":
                    name, prepend = detail
                    module = model.get_submodule(name)
                    with contextlib.suppress(RuntimeError):  # a scripted module takes none
                        users.append(module.register_forward_hook(_theirs, prepend=prepend))
                elif not scopes:
                    continue
                elif kind == "close one":
                    if opened:
                        _close(opened.pop(int(detail * len(opened))), None)
                else:
                    opened.append(_OPENERS[kind][0](model, self, detail))
            yield
        finally:
            for each in self.closing:
                if opened:
                    _close(opened.pop(each % len(opened)), self.error)
            while opened:
                _close(opened.pop(), self.error)
            for each in users[::-1] if len(users) % 2 else users:
                each.remove()


def _close(scope: Opened, error: type[BaseException] | None) -> None:
    with contextlib.suppress(UnfiredError), warnings.catch_warnings():
        # Of an edit at a module that did not run.
        warnings.filterwarnings("ignore", message=".* was never applied", category=UserWarning)
        scope.close(None if error is None else error("left by it"))


def _theirs(*_: object) -> None:
    """A hook of somebody else's."""


# -- the kinds of scopes --------------------------------------------------------------------------


def _trace(model: nn.Module, plan: Plan, detail: float) -> Opened:
    drawn = random.Random(detail)
    options = {
        name: drawn.random() < 0.4 for name in ("inputs", "grads", "input_grads", "param_grads")
    }
    copy = drawn.choice([None, None, True, False])
    return _entered(nethook.trace(model, *_modules(model, plan), copy=copy, **options))


def _trace_operations(model: nn.Module, plan: Plan, detail: float) -> Opened:
    return _entered(nethook.trace(model, "**/*", grads=detail < 0.3))


def _fails_half_way(model: nn.Module, plan: Plan, detail: float) -> Opened:
    try:
        nethook.trace(model, *_modules(model, plan), "no such layer").__enter__()
    except NoSuchSiteError:
        return Opened(lambda _: None)
    raise AssertionError("a name that means nothing was accepted")


def _edit(model: nn.Module, plan: Plan, detail: float) -> Opened:
    return _entered(nethook.edit(model, outputs={_meant(model, plan): _looks}))


def _looks(value: object) -> None:
    """An edit that changes nothing."""


def _callbacks(model: nn.Module, plan: Plan, detail: float) -> Opened:
    callbacks = nethook.Callbacks(model)
    callbacks.after(_meant(model, plan))(_looks)
    if detail < 0.5:
        callbacks.before(_meant(model, plan))(_looks)
        return _entered(callbacks)
    callbacks.attach()
    return Opened(lambda _: callbacks.remove())


def _classic(model: nn.Module, plan: Plan, detail: float) -> Opened:
    first = plan.names[0]
    if detail < 0.4:
        return _entered(nethook.Trace(model, first, retain_input=detail < 0.2))
    if detail < 0.7:
        names = list(dict.fromkeys(plan.names))
        return _entered(nethook.TraceDict(model, names))
    wrapper = nethook.InstrumentedModel(model)
    wrapper.retain_layer(first)
    return Opened(lambda _: wrapper.close())


def _watch(model: nn.Module, plan: Plan, detail: float) -> Opened:
    if any(isinstance(each, UninitializedTensorMixin) for each in model.parameters()):
        return Opened(lambda _: None)  # no shape yet: nothing that could be written down
    path = plan.folder / f"{detail}.db"
    for old in plan.folder.glob(f"{path.name}*"):
        old.unlink()
    return _entered(nethook.watch(model, None, path, budget=None, batches=0))


def _suspended(model: nn.Module, plan: Plan, detail: float) -> Opened:
    return _entered(nethook.suspended(model))


# kind: how it is opened, and how often it is drawn
_OPENERS: dict[str, tuple[Callable[[nn.Module, Plan, float], Opened], int]] = {
    "trace": (_trace, 30),
    "operations": (_trace_operations, 8),
    "fails": (_fails_half_way, 8),
    "edit": (_edit, 15),
    "callbacks": (_callbacks, 15),
    "classic": (_classic, 20),
    "suspended": (_suspended, 6),
    "watch": (_watch, 1),
}


def _entered(scope: Any) -> Opened:
    scope.__enter__()

    def close(error: BaseException | None) -> None:
        with contextlib.suppress(Boom, SilentBoom):  # a generator passes on what it is told
            scope.__exit__(None if error is None else type(error), error, None)

    return Opened(close)


def _modules(model: nn.Module, plan: Plan) -> list[nn.Module]:
    return [model.get_submodule(name) for name in plan.names]


def _meant(model: nn.Module, plan: Plan) -> Callable[[str, nn.Module], bool]:
    meant = {id(module) for module in _modules(model, plan)}
    return lambda _, module: id(module) in meant


# -- the models -----------------------------------------------------------------------------------


@cache
def _usable() -> list[Exhibit]:
    return [each for each in EXHIBITS if all(find_spec(name) is not None for name in each.needs)]


@cache
def _names(exhibit: Exhibit) -> list[str]:
    """Modules that can be addressed; wrappers are transparent."""
    model = built(exhibit)
    found = []
    for name, module in modules_of(model).items():
        with contextlib.suppress(LookupError):
            if any(each is module for each in nethook.select(model, module).values()):
                found.append(name)
    return found


@cache
def _calls(exhibit: Exhibit) -> int:
    counter = Bomb(at=-1)
    observe(exhibit, bomb=counter)
    return counter.calls


def _bomb(drawn: random.Random, exhibit: Exhibit) -> Callable[[], Bomb | None]:
    """What throws an exception into the run: a new one each time, all alike."""
    if drawn.random() < 0.6:
        return lambda: None
    at = drawn.randrange(max(_calls(exhibit), 1))
    place, kind = drawn.choice(PLACES), drawn.choice([Boom, SilentBoom])
    return lambda: Bomb(at, place, kind)


def _hooks_of(model: nn.Module) -> object:
    return [(info.address, info.kind, info.owner, info.ours) for info in nethook.audit(model)]


# -- growth ---------------------------------------------------------------------------------------


def _does_not_grow(exhibit: Exhibit, plan: Plan, bomb: Callable[[], Bomb | None]) -> None:
    grown = _growth(exhibit, plan.carried_out, bomb, _is_ours)
    if grown and _growth(exhibit, plan.without_scopes, bomb, _is_tensor):
        return  # the model leaks its graph by itself, with whatever hangs on it
    assert not grown, f"{exhibit.name}: {plan} leaves {dict(grown)}"


def _growth(
    exhibit: Exhibit,
    around: Scope,
    bomb: Callable[[], Bomb | None],
    counted: Callable[[object], bool],
) -> Counter[str]:
    """What there is more of after the last cycle than after the third, by type."""
    counts: list[Counter[str]] = []
    model = built(exhibit)
    for _ in range(REPEATS):
        planted = bomb()
        # Some models can be run once only; what they raise then is no concern of this test.
        with contextlib.suppress(Exception, SilentBoom), quiet(exhibit):
            _run(exhibit, model, around, planted)
        if planted is not None and planted.exploded is not None:
            # It holds the graph in whose hooks the bomb lay: a circle through torch.
            planted.exploded.__traceback__ = None
        model.zero_grad(set_to_none=True)
        gc.collect()
        found = [type(each) for each in gc.get_objects() if counted(each)]
        counts.append(Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in found))
    return counts[-1] - counts[2]


def _run(exhibit: Exhibit, model: nn.Module, around: Scope, bomb: Bomb | None) -> None:
    planted = contextlib.nullcontext() if bomb is None else bomb.planted()
    with planted, around(model):
        output = exhibit.call(model, Given())
        if exhibit.differentiable:
            loss_of(output).backward()


def _is_ours(each: object) -> bool:
    return type(each).__module__.startswith("nethook.")


def _is_tensor(each: object) -> bool:
    return issubclass(type(each), Tensor)
