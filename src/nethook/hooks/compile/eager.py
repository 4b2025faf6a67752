"""Compiled models, and hooks that compiled code would ignore.

For a scope they run eagerly. For a watch, hooks become part of the graph (`graph`), and compiled
code checks that they are there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Final

import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.addresses.wrappers import can_be_compiled
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Handle, Hook, Owner
from nethook.hooks.imports import when_imported
from nethook.hooks.registries import global_hooks
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import (
    ANY_GLOBAL_HOOK,
    COMPILED_CALL,
    COMPILER_CALLBACKS,
    COMPILER_SETTINGS,
    check_hooks,
    compiled_call_of,
    compiler_callbacks,
    expect_skipped_graphs,
    forget_compiled,
    is_compiled,
    warn_of_skipped_graphs,
)

_MODULES: Final = "torch.nn.modules.module"


def run_eagerly_where_compiled(tree: Tree, hooks: Attachment, *, in_block: bool = True) -> None:
    """Lets compiled parts of a model run eagerly, and so call their hooks, while `hooks` are on.

    Code that was compiled before a hook came does not know of it and would bypass it
    silently. The compiled code stays as it is and is used again afterwards.

    With `in_block` the same holds for what is compiled while `hooks` are on: it would be compiled
    around the hooks, in pieces, and with `fullgraph=True` not at all. For that `torch.compile` is
    wrapped. Hooks without a block may never be taken off, and must not leave that behind.
    """
    if can_be_compiled() and _has_compiled_parts(tree):
        hooks.add(_Eager())
    elif in_block:
        hooks.add(WrappedFunction("torch", "compile", EagerOnceCompiled(hooks, tree.root)))


def _has_compiled_parts(tree: Tree) -> bool:
    if any(map(compiled_call_of, tree.modules)):
        return True
    return bool(tree.wrappers) and any(is_compiled(module) for _, module in tree.wrappers)


def without_warning_of_global_hooks(hooks: Attachment) -> None:
    """Lets torch be silent about our global hooks on compiled modules while `hooks` are on.

    It warns that such a hook is called for the wrapper as well. Ours know that, and look through;
    of anybody else's it still warns. The compiler need not have been imported yet, and no filter
    of `warnings` is touched: that would have Python show warnings again that it has shown before.
    """
    hooks.add(WrappedFunction(_MODULES, ANY_GLOBAL_HOOK, Uncounted(hooks.owner, ANY_GLOBAL_HOOK)))


def check_hooks_in_graphs(hooks: Attachment) -> None:
    """Lets compiled code check which hooks its modules have, while `hooks` are on.

    Otherwise code that was compiled for a module without hooks is used for one with hooks, which
    it knows nothing of: for a sibling in the same model, for the same model in another copy, and
    for this model if it was called before. What was compiled so far is compiled again when it is
    next called. (A setting of torch's; 0.4 µs per module and call.)
    """
    hooks.add(_Checked())


def around_compiled_call(
    module: nn.Module, hooks: Attachment, begins: Callable[..., Any], ends: Callable[..., Any]
) -> bool:
    """Calls `begins(module, args, kwargs)` and `ends(module, args, output)` around a module.

    Of one that was compiled in place (`module.compile()`), whose own hooks are compiled too; of
    any other it does nothing. `ends` is told None for the output where the call raised.

    Returns:
        Whether it was.
    """
    if compiled_call_of(module) is None:
        return False
    hooks.add(_Around(hooks.owner, module, begins, ends))
    return True


class WhenCompiling:
    """A handle: calls `act()` before torch compiles anything, and `done()` after it has."""

    def __init__(self, act: Callable[[], None], done: Callable[[], None] | None = None) -> None:
        self._act = act
        self._done = done
        self._handler: Any = None
        self._waiting: Handle = when_imported(COMPILER_CALLBACKS, self._put_on)

    def _put_on(self) -> None:
        self._handler = compiler_callbacks()
        self._handler.register_start_callback(self._start)
        if self._done is not None:
            self._handler.register_end_callback(self._end)

    def _start(self, _: object) -> None:
        self._act()

    def _end(self, _: object) -> None:
        if self._done is not None:
            self._done()

    def remove(self) -> None:
        """Calls them no more."""
        self._waiting.remove()
        if self._handler is not None:
            # `torch._dynamo.reset` takes them off as well.
            if self._start in self._handler.start_callbacks:
                self._handler.remove_start_callback(self._start)
            if self._end in self._handler.end_callbacks:
                self._handler.remove_end_callback(self._end)


class _Checked:
    """A handle: graphs that are compiled meanwhile check the hooks of their modules."""

    # Those that are on; of the class, for the setting of torch that they switch is the process's.
    # The first one makes torch forget what was compiled without the check.
    _on: ClassVar[list[_Checked]] = []

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: Handle = when_imported(COMPILER_SETTINGS, self._put_on)

    def _put_on(self) -> None:
        if self._on == []:
            check_hooks(True)
            forget_compiled()
        self._on.append(self)

    def remove(self) -> None:
        self._waiting.remove()
        if self in self._on:
            self._on.remove(self)
            if self._on == []:
                check_hooks(False)


class _Around(Hook):
    """Stands where a module keeps its compiled call; a handle as well."""

    __slots__ = ("_begins", "_ends", "_original", "_where")

    def __init__(
        self, owner: Owner, module: nn.Module, begins: Callable[..., Any], ends: Callable[..., Any]
    ) -> None:
        super().__init__(owner, "")
        self._begins = begins
        self._ends = ends
        self._original: Any = compiled_call_of(module)
        self._where = weakref.ref(module)
        setattr(module, COMPILED_CALL, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The compiled call."""
        module, output = self._where(), None
        if not self.owner.alive or module is None:
            return self._original(*args, **kwargs)
        self._begins(module, args, kwargs)
        try:
            output = self._original(*args, **kwargs)
        finally:
            self._ends(module, args, output)
        return output

    def remove(self) -> None:
        """The module's own compiled call is back."""
        module = self._where()
        if module is not None and compiled_call_of(module) is self:
            setattr(module, COMPILED_CALL, self._original)


CALL_OF_COMPILED: Final = _Around.__call__.__code__
"""What runs while a module that was compiled in place is called; `module` is that module."""


class Uncounted(Hook):
    """Stands around torch's question whether there are global hooks; ours do not count."""

    __slots__ = ()

    def __call__(self, original: Callable[..., Any]) -> bool:
        """Whether there are hooks on all modules that are not ours."""
        return bool(original()) and any(
            not isinstance(hook, Hook)
            for table in global_hooks()
            if "registration" not in table.kind
            for hook in table.hooks.values()
        )


class EagerOnceCompiled(Hook):
    """Stands around `torch.compile`: what shares modules with a model runs eagerly from then on.

    `model.compile()` ends in `torch.compile`, too. Of a function nobody can say what it will call:
    one that is compiled in the scope and calls the model is compiled around the hooks.
    """

    __slots__ = ("_hooks", "_root")

    def __init__(self, hooks: Attachment, root: nn.Module) -> None:
        super().__init__(hooks.owner, "torch.compile")
        self._hooks = weakref.ref(hooks)  # held, the attachment would never end by itself
        self._root = weakref.ref(root)

    def __call__(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `torch.compile` returns. It compiles nothing before that is called."""
        compiled = original(*args, **kwargs)
        given = args[0] if args else kwargs.get("model")
        module = getattr(given, "__self__", given)  # of a method, as `model.compile()` gives it
        hooks, root = self._hooks(), self._root()
        if hooks is not None and root is not None and isinstance(module, nn.Module):
            ours = set(map(id, root.modules()))
            if self.owner.alive and not ours.isdisjoint(map(id, module.modules())):
                hooks.add(_Eager())
        return compiled


class _Eager:
    """A handle: everything that was compiled runs eagerly until it is removed."""

    # Those that are on; of the class, for torch has one stance for the process. A stance restores
    # the one before it, and so must be left in order; scopes may be left in any.
    _on: ClassVar[list[_Eager]] = []
    # Whether the compiler would warn of them, were it not told to expect them.
    _expected: ClassVar[bool] = False

    __slots__ = ("_stance",)

    def __init__(self) -> None:
        self._stance = torch.compiler.set_stance("force_eager")  # in force from here on
        self._on.append(self)
        _Eager._expected = expect_skipped_graphs() or _Eager._expected

    def remove(self) -> None:
        if self not in self._on:
            return
        self._on.remove(self)
        if _Eager._expected and self._on == []:
            _Eager._expected = False
            warn_of_skipped_graphs()
        # Where another scope was opened inside this one and is still open, its stance would bring
        # ours back at its end: it is given the one from before ours instead.
        for other in self._on:
            if other._stance.prev is self._stance.stance:
                other._stance.prev = self._stance.prev
                return
        self._stance.__exit__(None, None, None)
