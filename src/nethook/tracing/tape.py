"""The tape: what a trace recorded, by address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nethook.addresses.glob import unescape
from nethook.addresses.suggest import close_names, listing
from nethook.errors import NoGradientError, NoSuchSiteError, NotAskedError, SeveralCallsError
from nethook.tracing.describe import dtypes, memory, shapes
from nethook.tracing.entry import Entry, State
from nethook.tracing.keep import read_value
from nethook.tracing.record import Record

if TYPE_CHECKING:
    from nethook.views.table import Table


class ParameterRecord:
    """The gradients of one parameter: one for each backward pass in the scope."""

    __slots__ = ("address", "kept", "names", "requires_grad")

    def __init__(self, address: str, names: Sequence[str], *, requires_grad: bool) -> None:
        self.address = address
        self.names = names
        self.requires_grad = requires_grad
        self.kept: list[Any] = []

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
        raise NoGradientError(
            f"no gradient has arrived at {self.address!r} in this scope: call backward() inside "
            "the scope, on a loss that depends on it."
        )

    def __repr__(self) -> str:
        passes = "1 backward pass" if len(self.kept) == 1 else f"{len(self.kept)} backward passes"
        return f"<gradients of {self.address!r}: {passes}>"


_AnyRecord = TypeVar("_AnyRecord", Record, ParameterRecord)


class Named(Mapping[str, _AnyRecord], Generic[_AnyRecord]):
    """A mapping from address to record, in which every name of a thing finds it."""

    def __init__(self, records: Sequence[_AnyRecord], kind: str) -> None:
        self._records: dict[str, _AnyRecord] = {record.address: record for record in records}
        self._kind = kind

    def __getitem__(self, name: str) -> _AnyRecord:
        record = self._find(name)
        if record is None:
            raise NoSuchSiteError(self._missing(name))
        return record

    def _find(self, name: object) -> _AnyRecord | None:
        if not isinstance(name, str):
            return None
        for spelt in (name, unescape(name)):
            if spelt in self._records:
                return self._records[spelt]
            for record in self._records.values():
                if spelt in record.names:
                    return record
        return None

    def _missing(self, name: object) -> str:
        if not isinstance(name, str):
            return f"a {self._kind} is read by its address, a string; got {name!r}."
        close = close_names(name, list(self._records))
        close_to = f" Closest: {listing(close)}." if close else ""
        return f"the {self._kind} {name!r} was not traced.{close_to}"

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"{{{', '.join(repr(record) for record in self._records.values())}}}"


class Tape(Named[Record]):
    """What a trace recorded: a mapping from address to record, in model order.

        tape["conv1"].output                 the only call's
        tape["relu"].calls[1].grad           one of several
        tape.params["conv1.weight"].grad     with param_grads=True

    Sites that were asked for and have not run are there too; reading them says why.
    """

    def __init__(
        self, state: State, records: Sequence[Record], parameters: Sequence[ParameterRecord]
    ) -> None:
        super().__init__(records, "site")
        self._state = state
        self._parameters = Named(parameters, "parameter")

    @property
    def params(self) -> Named[ParameterRecord]:
        """The gradients of parameters, by address (with `param_grads=True`)."""
        if not self._state.options.param_grads:
            raise NotAskedError(
                "gradients of parameters were not recorded: trace with param_grads=True."
            )
        return self._parameters

    @property
    def forwards(self) -> int:
        """How many times the model itself was called in the scope."""
        return self._state.forwards

    @property
    def stopped(self) -> bool:
        """Whether `stop=True` ended a forward early."""
        return self._state.stopped_at is not None

    @property
    def memory(self) -> int:
        """The bytes of all tensors held; lazy copies that share their memory count in full."""
        return sum(_memory(record) for record in self.values())

    def clear(self) -> None:
        """Forgets everything recorded so far; the scope goes on recording."""
        for record in self._records.values():
            record.clear()
        for parameter in self._parameters.values():
            parameter.kept.clear()
        self._state.clear()

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        from nethook.views.table import Table, count, size

        rows = []
        for record in self.values():
            last = record.entries[-1][1] if record.entries else None
            rows.append(
                (
                    record.address or '""',
                    record.type_name,
                    str(record.total),
                    shapes(last) if record.entries else "not called",
                    dtypes(last),
                    size(_memory(record)) if record.entries else "",
                )
            )
        title = f"tape of {count(len(self), 'site')}, {count(self.forwards, 'forward')}"
        columns = ("address", "type", "calls", "output", "dtype", "memory")
        return Table(f"{title}, {size(self.memory)}", columns, rows, frozenset(["calls", "memory"]))


def _memory(record: Record) -> int:
    entries = (Entry(*entry) for entry in record.entries)
    return sum(memory((entry.output, entry.inputs)) for entry in entries)
