"""What a tape holds of one site, as people read it."""

from __future__ import annotations

from typing import Any

from nethook.addresses.inputs import Inputs
from nethook.errors import SeveralCallsError
from nethook.tracing.tape.calls import Call, Calls
from nethook.tracing.tape.site_calls import SiteCalls


class Record(SiteCalls):
    """What a tape holds of one site.

    `output`, `input`, `args`, `kwargs`, `grad`, `grads`, `input_grads`, `node` and `forward` are
    those of the only call; where there were several they raise `SeveralCallsError`: read
    `.calls[i]` or `.last` then.
    """

    __slots__ = ()

    @property
    def calls(self) -> Calls:
        """All calls of the site that were kept, over all forwards in the scope."""
        return Calls(self)

    @property
    def last(self) -> Call:
        """The last call."""
        if not self.entries:
            self.raise_not_run()
        return self.calls[-1]

    @property
    def output(self) -> Any:
        """What the only call returned."""
        return self._only().output

    @property
    def input(self) -> Any:
        """The first argument of the only call."""
        return self._only().input

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments of the only call."""
        return self._only().args

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the only call."""
        return self._only().kwargs

    @property
    def grad(self) -> Any:
        """The gradient of the only call's output."""
        return self._only().grad

    @property
    def grads(self) -> list[Any]:
        """The gradients of the only call's output, one for each backward pass."""
        return self._only().grads

    @property
    def input_grads(self) -> Inputs:
        """The gradients of the only call's inputs."""
        return self._only().input_grads

    @property
    def node(self) -> Any:
        """The autograd node that made the only call's output (with `nodes=True`)."""
        return self._only().node

    @property
    def forward(self) -> int | None:
        """The forward that the only call belongs to."""
        return self._only().forward

    def _only(self) -> Call:
        if self.total > 1:
            raise SeveralCallsError(
                f"{self.address!r} was called {self.total} times: read .calls[i] (i from 0), "
                ".last, or .calls.stack()."
            )
        return self.last

    def __repr__(self) -> str:
        calls = "1 call" if self.total == 1 else f"{self.total} calls"
        shown = f", last {self.calls[-1].shape}" if self.entries else ""
        return f"<record {self.address!r} ({self.type_name}): {calls}{shown}>"
