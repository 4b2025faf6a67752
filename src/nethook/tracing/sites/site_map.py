"""The site map: everything that happens in one forward, as plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from torch import nn

from nethook.addresses.glob import has_op, translate, unescape
from nethook.addresses.op_addresses import OpPattern
from nethook.addresses.suggest import closest
from nethook.errors import NoSuchSiteError, OptionError, PatternError
from nethook.hooks.process.source_line import Source

if TYPE_CHECKING:
    import rich.tree

    from nethook.text.tree import Branch, TreeView

ModuleClass: TypeAlias = type[nn.Module]
Kind = Literal["module", "op"]


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """One site of a forward: a module or an operation, with what was seen of its first call.

    `type` is the module's class or the operation's name. `parameters` are the parameters that a
    module owns itself, or the parameters and buffers that an operation was given. `module` is the
    address of the module in whose call it ran; that of the model itself is None. `calls` counts
    them all.
    """

    address: str
    kind: Kind
    type: str
    depth: int
    module: str | None
    shapes: tuple[tuple[int, ...], ...]  # of what it returned
    dtypes: tuple[str, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    parameters: tuple[str, ...]
    source: Source | None
    calls: int
    names: tuple[str, ...] = field(default=(), repr=False)  # all that it answers to
    cls: ModuleClass | None = field(default=None, repr=False, compare=False)
    number: int = field(default=0, repr=False)  # its place in the whole map
    around: tuple[int, ...] = field(default=(), repr=False)  # the rows it lies in, outermost first

    def to_dict(self) -> dict[str, Any]:
        """All of it, as numbers, strings, lists and dicts."""
        return {
            "address": self.address,
            "kind": self.kind,
            "type": self.type,
            "depth": self.depth,
            "module": self.module,
            "shapes": [list(shape) for shape in self.shapes],
            "dtypes": list(self.dtypes),
            "input_shapes": [list(shape) for shape in self.input_shapes],
            "parameters": list(self.parameters),
            "file": None if self.source is None else self.source.file,
            "line": None if self.source is None else self.source.line,
            "calls": self.calls,
        }


@dataclass(frozen=True, slots=True, repr=False)
class SiteMap:
    """Every module call and every operation of one forward, nested, in order of execution.

        sites = nethook.sites(model, x)
        sites["**/softmax"]                    a smaller map; "layer*", "/add#0" and so on
        sites.filter(type=nn.Linear, depth=3)
        [site.address for site in sites]
        sites.site("fc1").shapes

    Printing it draws a tree, folded where it is large; `tree()` is all of it, `to_dict()` is plain
    data. `order` are the calls as they came, (address, number of the call); `uncalled` are the
    modules that this forward did not call.
    """

    rows: tuple[SiteInfo, ...]
    order: tuple[tuple[str, int], ...]
    uncalled: tuple[str, ...]

    # -- choosing -----------------------------------------------------------------------------

    def __getitem__(self, pattern: str | re.Pattern[str]) -> SiteMap:
        """The sites that a pattern means: a name, a glob, `module/op#k`, a regular expression."""
        return self.filter(pattern)

    def filter(
        self,
        pattern: str | re.Pattern[str] | None = None,
        *,
        type: ModuleClass | str | None = None,
        depth: int | None = None,
        kind: Kind | None = None,
    ) -> SiteMap:
        """A map of the sites that all of these mean; `NoSuchSiteError` where there are none.

        Arguments:
            pattern: as in `trace`; of a module it means the module, not what lies in it.
            type: a module class, or the name of an operation.
            depth: how many levels to show; 0 is the model itself.
            kind: "module" or "op".
        """
        if kind not in (None, "module", "op"):
            raise OptionError(f'`kind` must be "module", "op" or None; got {kind!r}.')
        wanted = [_of_pattern(pattern), _of_type(type)]
        kept = [
            row
            for row in self.rows
            if all(means(row) for means in wanted)
            and (depth is None or row.depth <= depth)
            and kind in (None, row.kind)
        ]
        if not kept:
            raise NoSuchSiteError(self._nothing(pattern))
        addresses = {row.address for row in kept}
        order = tuple(call for call in self.order if call[0] in addresses)
        return replace(self, rows=tuple(kept), order=order)

    def site(self, address: str) -> SiteInfo:
        """The one site of that address, by any name of its module."""
        for spelt in (address, unescape(address)):
            for row in self.rows:
                if spelt in row.names:
                    return row
        raise NoSuchSiteError(self._nothing(address))

    def _nothing(self, pattern: object) -> str:
        if not isinstance(pattern, str):
            return "no site of this forward is meant by that filter."
        if pattern in self.uncalled:
            return f"{pattern!r} was not called in this forward; it is a module of the model."
        names = [row.address for row in self.rows]
        return (
            f"no site of this forward matches {pattern!r}. {closest(pattern, names, kind='site')}"
        )

    @property
    def modules(self) -> tuple[SiteInfo, ...]:
        """The rows of modules."""
        return tuple(row for row in self.rows if row.kind == "module")

    @property
    def ops(self) -> tuple[SiteInfo, ...]:
        """The rows of operations."""
        return tuple(row for row in self.rows if row.kind == "op")

    # -- showing ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All of it, as numbers, strings, lists and dicts."""
        return {
            "sites": [row.to_dict() for row in self.rows],
            "order": [list(call) for call in self.order],
            "uncalled": list(self.uncalled),
        }

    def tree(self, rows: int | None = None) -> str:
        """The whole tree as text, or what fits in so many rows."""
        return self._view(rows).text()

    def __len__(self) -> int:
        """How many sites there are."""
        return len(self.rows)

    def __iter__(self) -> Iterator[SiteInfo]:
        return iter(self.rows)

    def __contains__(self, address: object) -> bool:
        return any(address in row.names for row in self.rows)

    def __repr__(self) -> str:
        from nethook.text.tree import ROWS_SHOWN

        return self._view(ROWS_SHOWN).text()

    def _repr_html_(self) -> str:
        return self._view(None).html()

    def __rich__(self) -> rich.tree.Tree:
        return self._view(None).rich()

    def _view(self, rows: int | None) -> TreeView:
        from nethook.text.numbers import count
        from nethook.text.tree import TreeView

        modules, ops = len(self.modules), len(self.ops)
        title = f"{count(modules, 'module')}, {count(ops, 'operation')}"
        if self.uncalled and self.rows[0].number == 0:
            title += f"; {len(self.uncalled)} not called"
        columns = ("site", "type", "output", "parameters", "calls", "source")
        return TreeView(title, columns, self._branches(), rows)

    def _branches(self) -> tuple[Branch, ...]:
        """Each row below the nearest row around it that is in this map."""
        from nethook.text.tree import Branch

        rows = {row.number: row for row in self.rows}
        children: dict[int | None, list[int]] = {}
        for row in self.rows:
            above = next((outer for outer in reversed(row.around) if outer in rows), None)
            children.setdefault(above, []).append(row.number)

        def branch(number: int) -> Branch:
            inner = tuple(branch(child) for child in children.get(number, ()))
            return Branch(_cells(rows[number]), inner)

        return tuple(branch(number) for number in children.get(None, ()))


def _cells(row: SiteInfo) -> tuple[str, ...]:
    shapes = ", ".join(str(shape) for shape in row.shapes[:3])
    if len(row.shapes) > 3:
        shapes += f" and {len(row.shapes) - 3} more"
    dtypes = ", ".join(dict.fromkeys(row.dtypes))
    # Those of the module itself without its name, which stands in the same line.
    own = f"{row.address if row.kind == 'module' else row.module}."
    shown = [name.removeprefix(own) for name in row.parameters]
    return (
        row.address or '""',
        row.type if row.kind == "module" else "",
        f"{shapes} {dtypes}" if dtypes not in ("", "float32") else shapes or "–",
        ", ".join(shown[:4]) + (" …" if len(shown) > 4 else ""),
        "" if row.calls == 1 else str(row.calls),
        "" if row.source is None else str(row.source),
    )


def _of_pattern(pattern: str | re.Pattern[str] | None) -> Callable[[SiteInfo], bool]:
    if pattern is None:
        return lambda _: True
    if isinstance(pattern, re.Pattern):
        return lambda row: any(pattern.fullmatch(name) for name in row.names)
    if not isinstance(pattern, str):
        raise PatternError(
            "`pattern` must be a name, a glob, module/op#k or a compiled regular expression; got "
            f"{type(pattern).__name__}. To choose by class, write .filter(type=...)."
        )
    if not has_op(pattern):
        expression = translate(pattern)
        return lambda row: (
            row.kind == "module" and any(expression.fullmatch(name) for name in row.names)
        )
    asked = OpPattern(pattern)

    def means(row: SiteInfo) -> bool:
        if row.kind != "op":
            return False
        name, _, k = row.address.rpartition("/")[2].partition("#")
        modules = [unescape(name.rpartition("/")[0]) for name in row.names]
        return asked.means_module(modules) and asked.matches(name, int(k))

    return means


def _of_type(kind: ModuleClass | str | None) -> Callable[[SiteInfo], bool]:
    if kind is None:
        return lambda _: True
    if isinstance(kind, str):
        return lambda row: row.kind == "op" and row.type == kind
    return lambda row: row.cls is not None and issubclass(row.cls, kind)
