"""`Trace`: one layer's output or input, kept or edited while a block runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

import torch
from torch import nn

from nethook.addresses.lookup import get_module
from nethook.addresses.nested import map_tensors
from nethook.addresses.tree import Tree
from nethook.classic.calling import OptionalArguments
from nethook.classic.copying import recursive_copy
from nethook.classic.on_call import put_on
from nethook.editing.calling import call_unseen
from nethook.errors import OptionError
from nethook.hooks.attachment import Attachment
from nethook.hooks.scope import Scope
from nethook.hooks.threads import taken_off
from nethook.torch_private import backward_id, in_transform
from nethook.tracing.keep import keep_value, read_value, snapshots
from nethook.tracing.objects import copier
from nethook.tracing.tape.entry import Stack


class StopForward(Exception):  # noqa: N818  the name that existing code catches
    """Ends a forward after the layer at which a `Trace` with `stop=True` stands."""


class UntilClosed:
    """A block that ends with `close()`, and swallows a `StopForward` where it is to stop."""

    stop: Any

    def close(self) -> None:
        """Takes the hooks off."""
        raise NotImplementedError

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


class _Kept:
    """An attribute that is there once a call has kept it, and that can be set and deleted."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, holder: TracedCall | Trace | None, owner: type | None = None) -> Any:
        return self if holder is None else holder._call().read(self._name)

    def __set__(self, holder: TracedCall | Trace, value: Any) -> None:
        holder._call(to_set=True).keep(self._name, value)

    def __delete__(self, holder: TracedCall | Trace) -> None:
        holder._call().forget(self._name)


class TracedCall:
    """What a `Trace` kept of one call of its layer: `.output`, `.input`, `.input_kw`."""

    def __init__(self, layer: str | None) -> None:
        self._layer = layer
        self._values: dict[str, Any] = {}

    def keep(self, name: str, value: Any) -> None:
        """Takes in what was kept of a value, or a value itself."""
        self._values[name] = value

    def read(self, name: str) -> Any:
        """The value as it was kept."""
        if name not in self._values:
            raise AttributeError(
                f"{name!r} of layer {self._layer!r} is not there: either the layer has not run, or "
                f"the trace was opened without retain_{'output' if name == 'output' else 'input'}.",
                name=name,
                obj=self,
            )
        # Read once and kept: from here on it is the reader's, who may write to it.
        value = self._values[name] = read_value(self._values[name], name)
        return value

    def forget(self, name: str) -> None:
        """Lets go of a value."""
        self.read(name)
        del self._values[name]

    def _call(self, *, to_set: bool = False) -> Self:
        return self

    output = _Kept("What the layer returned, after the edit.")
    input = _Kept("The only argument by position, or the tuple of all of them.")
    input_kw = _Kept("The arguments by name, as a dict.")


class Trace(UntilClosed):
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
            raise OptionError(f"`calls` must be 'last' or 'all'; got {calls!r}.")
        self.layer = layer
        self.stop = stop
        self.calls: list[TracedCall] = []
        self.called = 0
        self._all = calls == "all"
        self._retain_output = retain_output
        self._retain_input = retain_input
        self._clone = bool(clone)
        self._grad = retain_grad
        self._edit = OptionalArguments(edit_output) if edit_output else None
        # An edit may write to the input, which is then kept as it is after that.
        self._input_after_edit = self._edit is not None and not self._input_before_edit
        self._keep = snapshots(copy=self._clone, detach=bool(detach))
        self._keep_input = self._keep
        if self._input_after_edit or not (clone or detach or self._edit):
            self._keep_input = snapshots(itself=True)
        self._begun: Stack[tuple[tuple[Any, ...], Any, Any]] = Stack()
        tree = Tree(module) if _tree is None else _tree
        # As the originals: the calls of every thread.
        scope = Scope("nethook.Trace", tree, threads="all", stays=True)
        self.registered_hook = scope.hooks
        scope.open(lambda hooks: self._attach(module, tree, hooks))

    def _attach(self, model: nn.Module, tree: Tree, hooks: Attachment) -> None:
        module = model
        if self.layer is not None:
            site = tree.find(self.layer)
            module = get_module(model, self.layer) if site is None else site.module
        put_on(
            hooks,
            tree,
            module,
            self.layer or "",
            before=self._begins if self._retain_input else None,
            after=self._returns,
            changes=self._edit is not None or bool(self._grad),
        )

    # -- what the hooks call ------------------------------------------------------------------

    def _begins(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        # Kept now, for a layer that works in place writes to its input.
        if backward_id() == -1 and not in_transform():
            kept_kw = keep_value(self._keep_input, kwargs) if kwargs else {}
            self._begun.append((args, keep_value(self._keep_input, args), kept_kw))

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """What the call that returns was given, as it was kept then."""
        while self._begun:  # calls that raised are still in it
            began, kept, kept_kw = self._begun.pop()
            if len(began) == len(args) and all(map(operator.is_, began, args)):
                if kwargs and not kept_kw:  # a global hook is not told of them before the call
                    kept_kw = keep_value(self._keep_input, kwargs)
                return kept, kept_kw
        given: tuple[Any, Any] = keep_value(self._keep_input, (args, kwargs))
        return given

    def _returns(self, args: tuple[Any, ...], *told: Any) -> Any:
        if taken_off(told):
            return None
        kwargs, output = told
        # What is computed again in backward is edited again, and not recorded: nor is what
        # happens inside a transform of torch.func, whose values do not outlive it.
        records = backward_id() == -1 and not in_transform()
        call = TracedCall(self.layer)
        given = self._given(args, kwargs) if self._retain_input and records else None
        if given is not None and self._input_after_edit:
            given = read_value(given, "input")  # the very tensors, unless the layer wrote to them
        new = self._edited(args, kwargs, output)
        if given is not None:
            if self._input_after_edit:
                given = keep_value(self._keep, given)
            call.keep("input", given[0][0] if len(args) == 1 else given[0])
            call.keep("input_kw", given[1])
        if self._retain_output and self._grad:
            kept = recursive_copy(new, clone=self._clone, retain_grad=True)
            # The very tensors, which get the gradients; the objects around them as they are now.
            call.keep("output", map_tensors(_same, kept, copier(snapshots(copy=self._clone))))
            new = recursive_copy(kept, clone=True)  # later in-place writes go to this one
        elif self._retain_output and records:
            call.keep("output", keep_value(self._keep, new))
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
        offered = {"output": output, "layer": self.layer, "inputs": args, "inputs_kw": kwargs}
        new = call_unseen(self._edit, (), {name: offered[name] for name in self._offers})
        return output if new is None else new

    # -- what was kept ------------------------------------------------------------------------

    def _call(self, *, to_set: bool = False) -> TracedCall:
        """The latest call; an empty one before the layer has run."""
        call = self.calls[-1] if self.calls else TracedCall(self.layer)
        if to_set and not self.calls:
            self.calls = [call]
        return call

    output = _Kept("What the layer returned in its latest call, after the edit.")
    input = _Kept("What the layer was given by position in its latest call.")
    input_kw = _Kept("What the layer was given by name in its latest call.")

    # -- the scope ----------------------------------------------------------------------------

    def close(self) -> None:
        """Takes the hook off; what was kept stays. A second call does nothing."""
        self.registered_hook.remove()
        self._begun.take(every=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of layer {self.layer!r}, called {self.called} times>"


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
