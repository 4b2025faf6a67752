"""What an exhibit is: one odd model, how to build and run it, and what it is there for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

__all__ = ["Exhibit", "Given", "Quiet"]

TensorT = TypeVar("TensorT", bound=Tensor)


class Given:
    """Makes the inputs of one call, the same for every call, and leaves the random state alone.

    Every tensor it hands out is remembered in `tensors`, so that whoever compares two runs also
    sees what became of the inputs: their gradients, and whether someone wrote into them.
    """

    def __init__(self, seed: int = 0) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.tensors: list[Tensor] = []

    def floats(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> Tensor:
        """A leaf of normal numbers; it requires its gradient unless told otherwise."""
        drawn = torch.randn(*shape, generator=self._generator, dtype=torch.float64)
        return self.keep(drawn.to(dtype).requires_grad_(grad))

    def ints(self, high: int, *shape: int) -> Tensor:
        """Whole numbers from 0 to `high` - 1."""
        return self.keep(torch.randint(high, shape, generator=self._generator))

    def keep(self, tensor: TensorT) -> TensorT:
        """Remember a tensor that was made by other means."""
        self.tensors.append(tensor)
        return tensor


@dataclass(frozen=True)
class Quiet:
    """A warning of somebody else's that an exhibit cannot avoid, and why it may be ignored."""

    category: type[Warning]
    message: str  # a regular expression that matches the start of the text
    reason: str


def _call_on_vectors(model: nn.Module, given: Given) -> object:
    return model(given.floats(3, 4))


@dataclass(frozen=True, eq=False, repr=False)  # each is itself: usable as a key
class Exhibit:
    """One odd model.

    `build` is called after the random state was seeded; `call` makes its own inputs with what it
    is given and returns whatever the model returned. Two builds and calls must give the same bits:
    a test holds them to it.
    """

    name: str
    mechanism: str  # one sentence: what can go wrong here and nowhere else
    build: Callable[[], nn.Module]
    call: Callable[[nn.Module, Given], object] = _call_on_vectors
    differentiable: bool = True  # some output can be back-propagated by the one who runs it
    train: bool = True  # mode the model is put into before the call
    needs: Sequence[str] = ()  # packages beyond the core; without them the exhibit is skipped
    quiet: Sequence[Quiet] = ()
    # Why hand-written hooks cannot serve as an oracle here (they change the run, or see what cannot
    # be compared); empty when they can.
    no_oracle: str = ""
    # It writes down every operation of torch: what a function of the tester's does, too.
    logs_operations: bool = False

    def __repr__(self) -> str:
        return f"<exhibit {self.name}>"
