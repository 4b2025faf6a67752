"""`Callbacks`: functions of the user's at any site, and losses from inside the network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.addresses.patterns import Pattern
from nethook.addresses.tree import Tree
from nethook.addresses.wrappers import unwrap
from nethook.editing.callbacks.gradient_check import GradientReport, check_gradients
from nethook.editing.callbacks.monitors import ActivationStats, DeadUnits, Forwards
from nethook.editing.callbacks.nodes import NodeEntry
from nethook.editing.callbacks.penalties import Penalty
from nethook.editing.catalogue import clip_norm
from nethook.editing.entries import Entry, Quantity, firings
from nethook.editing.scope import EditScope
from nethook.errors import EditError, NotFiniteError, ScopeError
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.scope import Scope
from nethook.hooks.threads import elsewhere
from nethook.stats.memory import pieces
from nethook.stats.native import readable
from nethook.stats.summary import summarise

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Registered = TypeVar("_Registered", bound=tuple[Any, ...])  # its priority first


class Callbacks:
    """Functions of your own at chosen places of a network, forward and backward.

        cb = nethook.Callbacks(model)

        @cb.after("conv*")
        def shift(output, site):
            return output + 1               # a replacement; None leaves the output as it is

        @cb.on_grad("fc1")
        def look(grad):
            print(grad.norm())

        with cb:                            # or cb.attach() ... cb.remove()
            loss = criterion(model(x), y)
            loss.backward()

    Each function may observe, or return a replacement. It is given the value, and the address of
    the site if it has a parameter named `site` or a second required one. Functions at one site are
    called in the order of registration, those of a higher `priority` first. Leaving the `with`
    warns of a callback that was never called in it. It can be entered again, as often as needed:
    leave it for an evaluation that is not meant.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._entries: list[tuple[int, Entry]] = []
        self._steps: list[tuple[int, torch.optim.Optimizer, Callable[..., Any]]] = []
        self._penalties: list[Penalty] = []
        self._forwards = Forwards()
        self._fired_at: list[int] = []
        self._scope: Scope | None = None
        self._edits: EditScope | None = None

    # -- where a function is called -----------------------------------------------------------

    def before(self, pattern: Pattern, *, priority: int = 0) -> Callable[[_Function], _Function]:
        """Before a module is called: `fn(inputs)`, a `nethook.Inputs` of all arguments.

        A replacement is another `Inputs`, or, where there is one argument, its new value.
        """
        return self._register("calls", pattern, priority)

    def after(self, pattern: Pattern, *, priority: int = 0) -> Callable[[_Function], _Function]:
        """After a module was called: `fn(output)`."""
        return self._register("outputs", pattern, priority)

    def on_grad(self, pattern: Pattern, *, priority: int = 0) -> Callable[[_Function], _Function]:
        """When the gradient of a module's output has come back: `fn(grad)`."""
        return self._register("grads", pattern, priority)

    def on_param_grad(
        self, pattern: Pattern, *, priority: int = 0
    ) -> Callable[[_Function], _Function]:
        """When the gradient of a parameter has come back, before it is added to `.grad`."""
        return self._register("param_grads", pattern, priority)

    def on_node(
        self,
        pattern: Pattern,
        *,
        before: bool = False,
        kind: str | None = None,
        priority: int = 0,
    ) -> Callable[[_Function], _Function]:
        """When the autograd node that made a module's output has run in a backward pass.

            @cb.on_node("fc1")
            def look(grad_inputs, grad_outputs):
                ...                          # None, or the new grad_inputs

        `fn(grad_inputs, grad_outputs)`: two tuples, of the gradients that the node passes on (an
        entry is None where nothing needs it) and of those it was given. With `before=True` it is
        `fn(grad_outputs)`, before the node runs. It may return a tuple as long as its first
        argument, in which None leaves a gradient as it is; or, where there is one gradient, its
        replacement; or None. The address goes to a parameter named `site`, or to one more that
        must be given.

        With `kind`, a glob of node names such as `"Addmm*"`, every node of such a name that the
        call made is meant, instead of the last one: `nn.Linear` on a batch of sequences ends in a
        `ViewBackward0`, and its `AddmmBackward0` lies behind. `autograd_graph` shows them.
        """

        def register(function: _Function) -> _Function:
            self._check_not_attached()
            entry = NodeEntry(pattern, _callable(function), before=before, kind=kind)
            self._entries.append((priority, entry))
            return function

        return register

    def on_step(
        self, optimizer: torch.optim.Optimizer, *, priority: int = 0
    ) -> Callable[[_Function], _Function]:
        """After each step of an optimizer: `fn(optimizer)`."""

        def register(function: _Function) -> _Function:
            self._check_not_attached()
            self._steps.append((priority, optimizer, function))
            return function

        return register

    def _register(
        self, quantity: Quantity, pattern: Pattern, priority: int
    ) -> Callable[[_Function], _Function]:
        def register(function: _Function) -> _Function:
            self._add(quantity, pattern, function, priority)
            return function

        return register

    def _add(
        self, quantity: Quantity, pattern: Pattern, function: Callable[..., Any], priority: int = 0
    ) -> None:
        self._check_not_attached()
        self._entries.append((priority, Entry(quantity, pattern, (), _callable(function))))

    def _check_not_attached(self) -> None:
        if self._scope is not None:
            raise ScopeError("these callbacks are attached: register before, or .remove() first.")

    # -- losses from inside the network -------------------------------------------------------

    def penalty(
        self, pattern: Pattern, function: Callable[..., torch.Tensor], weight: float = 1.0
    ) -> None:
        """Adds `weight * function(output)` of each call of the sites to `cb.loss()`.

        cb.penalty("relu*", lambda out: out.abs().mean(), weight=1e-4)
        loss = criterion(model(x), y) + cb.loss()
        """
        penalty = Penalty(pattern, function, weight)
        self._add("outputs", pattern, penalty)
        self._penalties.append(penalty)

    def loss(self) -> torch.Tensor:
        """The sum of all penalties since the last call of this, with its graph.

        Raises `EditError` where there are none, or one of them saw nothing.
        """
        if not self._penalties:
            raise EditError("there are no penalties: register one with cb.penalty(pattern, fn).")
        terms = [penalty.take() for penalty in self._penalties]
        return torch.stack([term.to(terms[0].device) for term in terms]).sum()

    # -- ready-made ---------------------------------------------------------------------------

    def clip_grad_norm(self, pattern: Pattern, max_norm: float, norm_type: float = 2.0) -> None:
        """Shortens the gradients of the parameters that `pattern` means to a joint norm.

        The same as `torch.nn.utils.clip_grad_norm_` at the end of each backward pass, on what has
        been accumulated in `.grad` so far.
        """
        self._add("param_grads", pattern, clip_norm(max_norm, norm_type, joint=True))

    def activation_stats(self, pattern: Pattern) -> ActivationStats:
        """Collects mean, standard deviation, minimum and maximum of outputs, call by call."""
        stats = ActivationStats(self._forwards)
        self._add("outputs", pattern, stats)
        return stats

    def dead_units(self, pattern: Pattern, *, unit_dim: int | None = None) -> DeadUnits:
        """Notes which units are dead: zero in every element, over all calls until `.reset()`.

        `unit_dim` is the dimension of the units. By default it is what the kind of the module says:
        channels of convolutions and of images, else the last one.
        """
        monitor = DeadUnits(self._forwards, unit_dim, self._module_at)
        self._add("outputs", pattern, monitor)
        return monitor

    def _module_at(self, site: str) -> nn.Module | None:
        return dict(unwrap(self._model).named_modules()).get(site)

    def print_shapes(
        self, pattern: Pattern = "**", *, grads: bool = False, file: TextIO | None = None
    ) -> None:
        """Prints the shapes of what modules return and, if asked, of their gradients."""

        def say(value: Any, site: str, kind: str) -> None:
            shapes = ", ".join(str(tuple(tensor.shape)) for _, tensor in tensors(value))
            print(f"{kind:8} {site or '(model)'}: {shapes or '–'}", file=file or sys.stdout)

        self._add("outputs", pattern, lambda value, site: say(value, site, "output"))
        if grads:
            self._add("grads", pattern, lambda value, site: say(value, site, "gradient"))

    def check_finite(self, pattern: Pattern = "**", *, grads: bool = True) -> None:
        """Raises `NotFiniteError` at the first output or gradient with a NaN or infinity in it."""

        def check(value: Any, site: str, kind: str) -> None:
            for _, tensor in tensors(value):
                for piece in pieces(tensor):
                    numbers = piece.is_floating_point() or piece.is_complex()
                    if not numbers or not readable.is_readable(piece):
                        continue
                    seen = summarise(piece.detach(), histogram=False)
                    if seen.finite < seen.count:
                        raise NotFiniteError(
                            f"the {kind} of {site!r} has {seen.count - seen.finite} of "
                            f"{seen.count} values that are not finite."
                        )

        self._add("outputs", pattern, lambda value, site: check(value, site, "output"))
        if grads:
            self._add("grads", pattern, lambda value, site: check(value, site, "gradient"))

    def check_gradients(
        self, loss: Callable[[], torch.Tensor], *, samples: int = 3, tolerance: float = 0.05
    ) -> GradientReport:
        """Finds parameters whose gradient is missing, zero, not finite or wrong.

            report = cb.check_gradients(lambda: criterion(model(x), y))
            assert report.ok, report

        Runs the loss and its backward pass once, then compares the `samples` largest elements of
        each gradient with finite differences: two forwards each. Everything is left as it was
        (docs/sites.md says what that means), except for what `loss` itself writes to. In float32,
        differences below 0.05 are rounding; a model in float64 can be held to 1e-5.
        """
        return check_gradients(self._model, loss, samples, tolerance)

    # -- on and off ---------------------------------------------------------------------------

    @property
    def firings(self) -> dict[str, int]:
        """How often each callback was called, by what it was registered for."""
        return firings(entry for _, entry in self._entries)

    def attach(self) -> Self:
        """Starts calling; `remove` ends it, and so does leaving a `with`."""
        self._check_not_attached()
        entries = [entry for _, entry in _by_priority(self._entries)]
        edits = EditScope(self._model, entries, strict=False)
        tree = Tree(self._model)

        def attach(hooks: Attachment) -> None:
            # First before the forward and last after it, so that every callback is inside.
            hooks.forward_pre(tree.root, _Begins(hooks.owner, self._forwards))
            hooks.add(edits.attach())
            hooks.forward(tree.root, _Ends(hooks.owner, self._forwards), always_call=True)
            for _, optimizer, function in _by_priority(self._steps):
                hooks.optimizer_step(optimizer, _Step(hooks.owner, function))

        scope = Scope("nethook.Callbacks", tree, stays=True)
        scope.open(attach)
        self._scope, self._edits = scope, edits
        self._fired_at = [entry.fired for entry in entries]
        return self

    def remove(self) -> None:
        """Ends the calls. A second time does nothing."""
        if self._scope is not None:
            self._scope.close()
        self._scope = self._edits = None

    def __enter__(self) -> Self:
        return self.attach()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        edits = self._edits
        self.remove()
        if error is None and edits is not None:
            edits.warn_of_unfired(self._fired_at)

    def __repr__(self) -> str:
        state = "attached" if self._scope is not None else "not attached"
        called = ", ".join(f"{what}: {count}" for what, count in self.firings.items())
        return f"<callbacks ({state}), called: {called or 'none'}>"


def _by_priority(registered: list[_Registered]) -> list[_Registered]:
    """The highest priority first; among equals, in the order of registration."""
    return sorted(registered, key=lambda row: -row[0])


def _callable(function: Any) -> Callable[..., Any]:
    if not callable(function):
        raise EditError(
            f"A callback must be a function; got {type(function).__name__}. Register one with "
            "@cb.after(pattern), or cb.after(pattern)(function)."
        )
    checked: Callable[..., Any] = function
    return checked


class _Begins(Hook):
    __slots__ = ("_forwards",)

    def __init__(self, owner: Owner, forwards: Forwards) -> None:
        super().__init__(owner, "")
        self._forwards = forwards

    def __call__(self, module: nn.Module, *given: Any) -> None:
        """Notes that a forward begins."""
        if elsewhere(self.owner, module):
            return
        if not self._forwards.running:
            self._forwards.number += 1
        self._forwards.running = True


class _Ends(_Begins):
    __slots__ = ()

    def __call__(self, module: nn.Module, *given: Any) -> None:
        """Notes that a forward has ended."""
        if elsewhere(self.owner, module):
            return
        self._forwards.running = False


class _Step(Hook):
    __slots__ = ("_function",)

    def __init__(self, owner: Owner, function: Callable[..., Any]) -> None:
        super().__init__(owner, "optimizer")
        self._function = function

    def __call__(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """Calls the function after a step."""
        self._function(optimizer)
