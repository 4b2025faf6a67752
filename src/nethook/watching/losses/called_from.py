"""The line of a script that calls a loss function, where a library runs the loop.

There the line that calls `backward` is that of `trainer.fit(model)`, which says little: of a
`training_step` it is the call of `F.cross_entropy` that a reader looks for. So in the first steps
of such a loop the nodes that torch's loss functions make are marked with the line they are called
from. A library's own loss has no such line, and is named by that of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from torch import nn

from nethook.addresses.wrappers import runs_compiled
from nethook.hooks.hook import Owner
from nethook.hooks.process.loss_functions import LossFunctions
from nethook.hooks.process.source_line import ScriptLine, library_calls, line_of_script
from nethook.watching.losses.graph import Node

CALL_MARK: Final = "nethook.loss"
"""The key in `node.metadata` of the node of a loss."""
STEPS: Final = 2
"""Steps in which calls are marked: whatever has a loss of its own has had its turn by then."""
NODES: Final = 64
"""Of a graph, from the loss on, that are looked at for a mark."""


class CalledFrom:
    """Marks losses with the line that calls their function, and finds it from a loss.

    Arguments:
        saw: called by a loss function of torch with (kind, args, kwargs, result). It calls `mark`,
            and lets no error through.
    """

    def __init__(self, saw: Callable[[str, tuple[Any, ...], dict[str, Any], Any], None]) -> None:
        self._saw = saw
        self._functions: LossFunctions | None = None
        self.done = False
        """Whether no more calls are marked."""

    def model_called(self, module: nn.Module, steps: int) -> None:
        """A model, or a part of one, is called in training after so many steps."""
        if self.done:
            return
        if steps >= STEPS:
            self.turn_off()
        elif self._functions is None:
            # A loop of the script's own; or a graph, in which functions must stay what they are.
            if next(library_calls(), None) is None or runs_compiled(module):
                self.turn_off()
                return
            self._functions = LossFunctions(Owner("nethook.watch"), self._saw, with_grad=True)
            self._functions.put_on()

    def turn_off(self) -> None:
        """Calls are no longer marked."""
        self.done = True
        if self._functions is not None:
            self._functions.remove()

    def mark(self, result: Any) -> None:
        """A loss function has returned this, at the line that runs now."""
        node = getattr(result, "grad_fn", None)
        if node is not None:
            node.metadata[CALL_MARK] = line_of_script(), set(library_calls())

    def find(self, root: Node, calls_backward: ScriptLine) -> ScriptLine:
        """The line that stands for a loss: the one that calls its function in a library's loop.

        Else it is the one that calls `backward`: in a loop of the script's own, and where that line
        only passes through a library (`accelerator.backward(loss)`).
        """
        loop = next(library_calls(), None)
        if loop is None or loop[0] != calls_backward:
            return calls_backward
        waiting, seen = [root], 0
        while waiting and seen < NODES:
            node, seen = waiting.pop(0), seen + 1
            mark: tuple[ScriptLine, set[Any]] | None = node.metadata.get(CALL_MARK)
            if mark is not None and loop in mark[1]:
                return mark[0]
            waiting += [below for below, _ in node.next_functions if below is not None]
        return calls_backward
