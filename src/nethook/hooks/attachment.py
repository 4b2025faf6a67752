"""Putting hooks on, all or nothing, and taking exactly those off again.

One mechanism serves every kind of hook. An attachment keeps the handles of what it registered and
nothing else, so it holds no module and no graph alive.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import torch
from torch import nn

from nethook.hooks.hook import Handle, Hook, Owner
from nethook.hooks.quiet import quiet


class Attachment:
    """The hooks of one owner: put on together, taken off together.

        hooks = Attachment(Owner("nethook.trace"))
        with hooks:                         # or hooks.remove(), at any time, any number of times
            hooks.forward(module, tap)
            hooks.tensor(parameter, other_tap)

    A block that raises, also half-way through registering, takes off all that were put on; so
    does the end of the attachment's own life. Hooks of others are never touched.
    """

    __slots__ = ("__weakref__", "_handles", "owner")

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._handles: list[Handle] = []

    # -- one method a kind of hook ------------------------------------------------------------

    def forward_pre(self, module: nn.Module, hook: Hook) -> None:
        """`hook(module, args, kwargs)` before a module's forward."""
        self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def forward(
        self,
        module: nn.Module,
        hook: Hook,
        *,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> None:
        """`hook(module, args, output)` after a module's forward.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`; with `always_call` it is
        also called when the forward raises, with None as the output.
        """
        self._handles.append(
            module.register_forward_hook(hook, with_kwargs=with_kwargs, always_call=always_call)
        )

    def tensor(self, tensor: torch.Tensor, hook: Hook) -> None:
        """`hook(grad)` when the gradient of a tensor or parameter was computed."""
        with quiet():  # also because a lazy module's parameter refuses to be touched otherwise
            self._handles.append(register_on_tensor(tensor, hook))

    def accumulated(self, parameter: torch.Tensor, hook: Hook) -> None:
        """`hook(parameter)` after a gradient was added to a parameter's `.grad`."""
        self._handles.append(parameter.register_post_accumulate_grad_hook(hook))

    def node(self, node: Any, hook: Hook, *, before: bool = False) -> None:
        """`hook(grad_inputs, grad_outputs)` after an autograd node has run.

        With `before` it is `hook(grad_outputs)`, called before the node runs.
        """
        self._handles.append(node.register_prehook(hook) if before else node.register_hook(hook))

    def optimizer_step(
        self, optimizer: torch.optim.Optimizer, hook: Hook, *, before: bool = False
    ) -> None:
        """`hook(optimizer, args, kwargs)` after an optimizer's step, or before it."""
        if before:
            self._handles.append(optimizer.register_step_pre_hook(hook))
        else:
            self._handles.append(optimizer.register_step_post_hook(hook))

    def add(self, handle: Handle) -> None:
        """Takes over a handle that another function of this room made."""
        self._handles.append(handle)

    # -- taking off ---------------------------------------------------------------------------

    def remove(self) -> None:
        """Takes every hook off, the last one first. A second call does nothing."""
        self.owner.alive = False
        for late in list(self.owner.late.values()):
            late.remove()
        while self._handles:
            self._handles.pop().remove()

    def __len__(self) -> int:
        """How many hooks are on."""
        return len(self._handles)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    def __del__(self) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"Attachment({self.owner.name}, {len(self)} hooks)"


def register_on_tensor(tensor: torch.Tensor, hook: Hook) -> Handle:
    """`tensor.register_hook`, without the crash that torch 2.13 has in store for some views."""
    # Where an alias of a view was written in place and `grad_fn` was not read since,
    # `register_hook` ends the process with a segmentation fault (pytorch#196459).
    tensor.grad_fn  # noqa: B018
    handle: Handle = tensor.register_hook(hook)
    return handle
