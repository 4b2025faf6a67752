"""Attaching hooks to a model and undoing that: the one sequence that all of nethook follows."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import run_eagerly_where_compiled
from nethook.hooks.hook import Owner
from nethook.hooks.threads import Threads, enter, leave, stay

T = TypeVar("T")


class Scope:
    """Hooks of one owner, from the moment they are attached until they are removed.

        with Scope("nethook.sites", tree) as hooks:  # for a block
            hooks.forward(module, hook)

        scope = Scope("nethook.edit", tree, stays=True)  # until it is closed
        scope.open(put_hooks_on)
        scope.close()

    Arguments:
        name: who owns the hooks, as `nethook.audit` shows it.
        tree: the model. Parts of it that were compiled run eagerly meanwhile, so that they call
            their hooks; in a block, those that are compiled in it, too. None where the hooks look
            after that themselves.
        threads: whose calls the hooks see: "own" or "all" (`nethook.hooks.threads`).
        stays: whether the hooks see the calls of this thread until they are removed, and not only
            those of this context, as a `with` block does.
    """

    __slots__ = ("_stays", "_threads", "_tree", "hooks")

    def __init__(
        self, name: str, tree: Tree | None, *, threads: Threads = "own", stays: bool = False
    ) -> None:
        self.hooks = Attachment(Owner(name))
        self._tree = tree
        self._threads = threads
        self._stays = stays

    @property
    def owner(self) -> Owner:
        """Whose hooks they are."""
        return self.hooks.owner

    def open(self, attach: Callable[[Attachment], T]) -> T:
        """Calls `attach` with what puts hooks on. Where it raises, no hook is left behind."""
        try:
            # First: other threads may call the model right now.
            see = stay if self._stays else enter
            see(self.hooks.owner, self._threads, *([] if self._tree is None else [self._tree.root]))
            if self._tree is not None:
                run_eagerly_where_compiled(self._tree, self.hooks, in_block=not self._stays)
            return attach(self.hooks)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Removes the hooks. A second time does nothing."""
        self.hooks.remove()
        leave(self.hooks.owner)

    def __enter__(self) -> Attachment:
        return self.open(lambda hooks: hooks)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
