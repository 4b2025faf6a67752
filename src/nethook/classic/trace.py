"""`Trace`: one layer's output or input, kept or edited while a block runs."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from torch import nn

from nethook.addresses.lookup import get_module
from nethook.addresses.tree import Tree
from nethook.classic.calling import OptionalArguments
from nethook.classic.copying import recursive_copy
from nethook.classic.retained import note, read, retain, retain_objects
from nethook.errors import OptionError
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.layouts.unhookable import RouterPair, routed_modules
from nethook.hooks.scope import Scope
from nethook.torch_private import backward_id, in_transform


class StopForward(Exception):  # noqa: N818  the name that existing code catches
    """Ends a forward after the layer at which a `Trace` with `stop=True` stands."""


class TracedCall:
    """What a `Trace` kept of one call of its layer: `.output`, `.input`, `.input_kw`."""

    def __init__(self, layer: str | None) -> None:
        self._layer = layer
        self._values: dict[str, Any] = {}

    def keep(self, name: str, value: Any) -> None:
        """Takes in what `retain` made of a value, or a value itself."""
        self._values[name] = value

    def _get(self, name: str) -> Any:
        if name not in self._values:
            raise AttributeError(
                f"{name!r} of layer {self._layer!r} is not there: either the layer has not run, or "
                f"the trace was opened without retain_{'output' if name == 'output' else 'input'}.",
                name=name,
                obj=self,
            )
        # Read once and kept: from here on it is the reader's, who may write to it.
        value = self._values[name] = read(self._values[name])
        return value

    def _del(self, name: str) -> None:
        self._get(name)
        del self._values[name]

    output = property(
        lambda self: self._get("output"),
        lambda self, value: self.keep("output", value),
        lambda self: self._del("output"),
        "What the layer returned, after the edit.",
    )
    input = property(
        lambda self: self._get("input"),
        lambda self, value: self.keep("input", value),
        lambda self: self._del("input"),
        "The only argument by position, or the tuple of all of them.",
    )
    input_kw = property(
        lambda self: self._get("input_kw"),
        lambda self, value: self.keep("input_kw", value),
        lambda self: self._del("input_kw"),
        "The arguments by name, as a dict.",
    )


class Trace:
    """Keeps or edits the output of one layer.

        with nethook.Trace(model, "layer1.0.conv1") as ret:
            model(x)
        ret.output

    Arguments:
        module: the model.
        layer: the name of a module in it; None means the model itself.
        retain_output, retain_input: what is kept. `.output` is the value after the edit. `.input`
            is the only positional argument, or the tuple of all; `.input_kw` has those by name.
        clone: whether what is kept gets memory of its own at once. Without it that happens when
            somebody writes to the original, so what is kept is right in either case.
        detach: whether what is kept is taken out of the graph. Not heeded with `retain_grad`.
        retain_grad: whether `.output.grad` is there after a backward pass. The output requires a
            gradient then, and the rest of the network is given a copy of it.
        edit_output: a function that returns the new output, or None for no change. It is called
            with those of `output`, `layer`, `inputs` and `inputs_kw` that it takes, by name or
            else in this order (see `invoke_with_optional_args`).
        stop: whether the forward ends after the layer, with `StopForward`, which a `with` block
            of this trace swallows.
        calls: "last" keeps the latest call; "all" keeps every one, in `.calls`.

    The hook is on from here until `.close()` or the end of the `with` block. Before the layer has
    run, reading `.output` is an `AttributeError`. `.called` counts the calls.

    Raises:
        NoSuchSiteError: a `LookupError`, where the model has no such layer.
    """

    # What an edit may ask for, and whether the input is kept before the edit or after it.
    _offers: ClassVar[tuple[str, ...]] = ("output", "layer", "inputs", "inputs_kw")
    _input_before_edit: ClassVar[bool] = False

    def __init__(
        self,
        module: nn.Module,
        layer: str | None = None,
        retain_output: bool | None = True,
        retain_input: bool | None = False,
        clone: bool | None = False,
        detach: bool | None = False,
        retain_grad: bool | None = False,
        edit_output: Callable[..., Any] | None = None,
        stop: bool | None = False,
        *,
        calls: Literal["last", "all"] = "last",
        _tree: Tree | None = None,
    ) -> None:
        if calls not in ("last", "all"):
            raise OptionError(f"calls is 'last' or 'all'; got {calls!r}.")
        self.layer = layer
        self.stop = stop
        self.calls: list[TracedCall] = []
        self.called = 0
        self._all = calls == "all"
        self._retain_output = retain_output
        self._retain_input = retain_input
        self._clone = clone
        self._detach = detach
        self._grad = retain_grad
        self._edit = OptionalArguments(edit_output) if edit_output else None
        self._begun: list[tuple[tuple[Any, ...], Any, Any]] = []
        tree = Tree(module) if _tree is None else _tree
        # As the originals: the calls of every thread.
        scope = Scope("nethook.Trace", tree, threads="all", stays=True)
        self.registered_hook = scope.hooks
        scope.open(lambda hooks: self._attach(module, tree, hooks))

    def _attach(self, model: nn.Module, tree: Tree, hooks: Attachment) -> None:
        address = self.layer or ""
        module = model
        if self.layer is not None:
            site = tree.find(self.layer)
            module = get_module(model, self.layer) if site is None else site.module
        # A module that cannot carry a hook of its own can be watched, but not edited.
        changes = self._edit is not None or self._grad
        place: Attachment | RouterPair = hooks
        if not changes and id(module) in routed_modules(tree):
            place = RouterPair(hooks)
        if self._retain_input:
            place.forward_pre(module, _Before(hooks.owner, address, self))
        after = _After(hooks.owner, address, self)
        if isinstance(place, RouterPair):
            place.forward(module, after)
        else:
            place.forward(module, after, with_kwargs=True)

    # -- what the hooks call ------------------------------------------------------------------

    def _begins(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # Noted now, for a layer that works in place writes to its input.
        if backward_id() == -1:
            self._begun.append((args, self._note(args), self._note(kwargs)))

    def _note(self, value: Any) -> Any:
        return note(value, clone=self._clone) if value else value

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the call that returns was given, as it was noted then."""
        while self._begun:  # calls that raised are still in it
            began, noted, named = self._begun.pop()
            if len(began) == len(args) and all(map(_is, began, args)):
                # A global hook is not told keyword arguments before the call.
                given = noted, named if named or not kwargs else self._note(kwargs)
                break
        else:
            given = self._note(args), self._note(kwargs)
        if self._clone or self._detach or self._edit is not None:
            return read(given)  # the very tensors, but for those that the layer wrote to
        return given

    def _returns(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        # What is computed again in backward is edited again, and not recorded: nor is what
        # happens inside a transform of torch.func, whose values do not outlive it.
        records = backward_id() == -1 and not in_transform()
        call = TracedCall(self.layer)
        given = self._given(args, kwargs) if self._retain_input and records else None
        if given is not None and self._input_before_edit:
            self._keep_input(call, *given)
        new = self._edited(args, kwargs, output)
        if given is not None and not self._input_before_edit:
            self._keep_input(call, *given)
        if self._retain_output and self._grad:
            kept = recursive_copy(new, clone=self._clone, retain_grad=True)
            call.keep("output", retain_objects(kept, clone=self._clone))
            new = recursive_copy(kept, clone=True)  # later in-place writes go to this one
        elif self._retain_output and records:
            call.keep("output", retain(new, clone=self._clone, detach=self._detach))
        if records:
            if self._all:
                self.calls.append(call)
            else:
                self.calls = [call]
            self.called += 1
            if self.stop:
                raise StopForward
        return None if new is output else new

    def _edited(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if self._edit is None:
            return output
        known = {"output": output, "layer": self.layer, "inputs": args, "inputs_kw": kwargs}
        new = self._edit((), {name: known[name] for name in self._offers})
        return output if new is None else new

    def _keep_input(self, call: TracedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value = args[0] if len(args) == 1 else args
        for name, each in (("input", value), ("input_kw", kwargs)):
            if self._clone or self._detach or self._edit is not None:
                # Kept as it is now: an edit may have written to it, or may be about to.
                each = retain(each, clone=self._clone, detach=self._detach)
            call.keep(name, each)

    # -- what was kept ------------------------------------------------------------------------

    def _last(self) -> TracedCall:
        return self.calls[-1] if self.calls else TracedCall(self.layer)

    def _set(self, name: str, value: Any) -> None:
        if not self.calls:
            self.calls = [TracedCall(self.layer)]
        self.calls[-1].keep(name, value)

    output = property(
        lambda self: self._last().output,
        lambda self, value: self._set("output", value),
        lambda self: self._last()._del("output"),
        "What the layer returned in its latest call, after the edit.",
    )
    input = property(
        lambda self: self._last().input,
        lambda self, value: self._set("input", value),
        lambda self: self._last()._del("input"),
        "What the layer was given by position in its latest call.",
    )
    input_kw = property(
        lambda self: self._last().input_kw,
        lambda self, value: self._set("input_kw", value),
        lambda self: self._last()._del("input_kw"),
        "What the layer was given by name in its latest call.",
    )

    # -- the scope ----------------------------------------------------------------------------

    def close(self) -> None:
        """Takes the hook off; what was kept stays. A second call does nothing."""
        self.registered_hook.remove()
        self._begun.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self.close()
        return bool(self.stop) and isinstance(error, StopForward)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of layer {self.layer!r}, called {self.called} times>"


def _is(one: object, other: object) -> bool:
    return one is other


class _Before(Hook):
    """Before the forward of a layer whose input is kept."""

    __slots__ = ("_trace",)

    def __init__(self, owner: Owner, address: str, trace: Trace) -> None:
        super().__init__(owner, address)
        # Held, and with it the attachment: the hook is to stay until it is closed, also where
        # nobody kept the trace. That is what a trace outside a `with` block always did.
        self._trace = trace

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        self._trace._begins(args, kwargs or {})


class _After(Hook):
    """After the forward of a layer."""

    __slots__ = ("_trace",)

    def __init__(self, owner: Owner, address: str, trace: Trace) -> None:
        super().__init__(owner, address)
        self._trace = trace

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        return self._trace._returns(args, kwargs, output)
