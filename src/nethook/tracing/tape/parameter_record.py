"""What a tape holds of one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nethook.errors import NoGradientError, SeveralCallsError
from nethook.tracing.keep import read_value


class ParameterRecord:
    """The gradients of one parameter: one for each backward pass in the scope."""

    __slots__ = ("address", "kept", "names", "requires_grad", "why")

    def __init__(self, address: str, names: Sequence[str], *, requires_grad: bool) -> None:
        self.address = address
        self.names = names
        self.requires_grad = requires_grad
        self.kept: list[Any] = []
        self.why: str | None = None  # why none can arrive

    @property
    def grad(self) -> Any:
        """The gradient of the only backward pass (what this pass added to `.grad`)."""
        grads = self.grads
        if len(grads) > 1:
            raise SeveralCallsError(
                f"{self.address!r} received gradients in {len(grads)} backward passes: read "
                ".grads[i], in the order of the passes."
            )
        return grads[0]

    @property
    def grads(self) -> list[Any]:
        """The gradients, one for each backward pass in the scope."""
        if self.kept:
            return [read_value(grad, f"a gradient of {self.address!r}") for grad in self.kept]
        if not self.requires_grad:
            raise NoGradientError(f"{self.address!r} is frozen: its requires_grad is False.")
        if self.why is not None:
            raise NoGradientError(f"no gradient of {self.address!r} can be recorded: {self.why}.")
        raise NoGradientError(
            f"no gradient has arrived at {self.address!r} in this scope: call backward() inside "
            "the scope, on a loss that depends on it."
        )

    def __repr__(self) -> str:
        passes = "1 backward pass" if len(self.kept) == 1 else f"{len(self.kept)} backward passes"
        return f"<gradients of {self.address!r}: {passes}>"
