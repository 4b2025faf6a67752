"""The tape: what a trace recorded, by address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from torch import nn

from nethook.addresses.glob import unescape
from nethook.addresses.op_addresses import is_op_pattern
from nethook.addresses.suggest import close_names, listing
from nethook.errors import NoSuchSiteError, NotAskedError
from nethook.tracing.tape.describe import dtypes, memory, shapes
from nethook.tracing.tape.entry import Entry
from nethook.tracing.tape.op_records import OpRecords
from nethook.tracing.tape.record import ParameterRecord, Record
from nethook.tracing.tape.state import State

if TYPE_CHECKING:
    from nethook.text.table import Table


_AnyRecord = TypeVar("_AnyRecord", Record, ParameterRecord)


class Named(Mapping[str, _AnyRecord], Generic[_AnyRecord]):
    """A mapping from address to record, in which every name of a thing finds it."""

    def __init__(self, records: Sequence[_AnyRecord], kind: str) -> None:
        self._all: dict[str, _AnyRecord] = {record.address: record for record in records}
        self._kind = kind

    @property
    def _records(self) -> dict[str, _AnyRecord]:
        return self._all

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
        tape["conv1/relu#0"].output          of an operation in conv1
        tape.params["conv1.weight"].grad     with param_grads=True

    Sites that were asked for and have not run are there too; reading them says why.
    """

    def __init__(
        self, state: State, records: Sequence[Record], parameters: Sequence[ParameterRecord],
        ops: OpRecords | None = None,
    ) -> None:  # fmt: skip
        super().__init__(records, "site")
        self._state = state
        self._ops = ops
        if ops is not None:
            ops.join(self._all)  # and those that are met from now on
        self._parameters = Named(parameters, "parameter")

    @property
    def _records(self) -> dict[str, Record]:
        return self._all if self._ops is None else self._ops.records

    def __getitem__(self, name: str) -> Record:
        """The record of a site; of an operation also by its name alone, if it is the only one."""
        record = self._find(name)
        if record is not None:
            return record
        if self._ops is None or not is_op_pattern(name):
            raise NoSuchSiteError(self._missing(name))
        matches = self._ops.find(name)
        if len(matches) > 1:
            raise NoSuchSiteError(
                f"{name!r} means {len(matches)} operations: "
                f"{listing(match.address for match in matches)}. Name one of them."
            )
        if not matches:
            raise self._ops.why_none(name) or NoSuchSiteError(self._missing(name))
        return matches[0]

    def __contains__(self, name: object) -> bool:
        if self._find(name) is not None:
            return True
        return self._ops is not None and is_op_pattern(name) and bool(self._ops.find(name))

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
    def model(self) -> nn.Module | None:
        """The model that was traced; None once it is gone, for a tape does not keep it alive."""
        return self._state.model()

    @property
    def has_nodes(self) -> bool:
        """Whether autograd nodes were recorded (`nodes=True`)."""
        return self._state.options.nodes

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
        from nethook.text.numbers import count, size
        from nethook.text.table import Table

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
