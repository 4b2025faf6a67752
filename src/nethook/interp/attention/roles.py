"""`roles`: which module does what in a transformer, found by running it once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from nethook.addresses.tree import Tree
from nethook.errors import NoSuchSiteError
from nethook.interp.attention.residual import BlockWalk, Layout, Walker, Write
from nethook.interp.attention.running import run_once
from nethook.text.table import Table


@dataclass(frozen=True)
class Block:
    """One block of a stack: what it adds to the residual stream, in order.

    `layout` is "sequential" (each part reads what the parts before it wrote), "parallel" (all read
    the block's input), "post-norm" (a norm stands between a part and the stream, or on the stream
    itself), or None where the output is not the input plus what the parts wrote. `readers` are the
    modules that are given the stream: the norms before the parts, or the parts themselves.
    """

    address: str
    layout: Layout | None
    writes: tuple[Write, ...]
    readers: tuple[str, ...] = ()

    @property
    def attention(self) -> str | None:
        """The module whose output is added as the (first) attention's; None if there is none."""
        return next((write.address for write in self.writes if write.role == "attention"), None)

    @property
    def mlp(self) -> str | None:
        """The module whose output is added as the MLP's; None if there is none."""
        return next((write.address for write in self.writes if write.role == "mlp"), None)


@dataclass(frozen=True, repr=False)
class Roles:
    """The parts of a transformer, by role.

    parts = interp.roles(model, tokens)
    parts.blocks                       addresses, in order of execution
    parts.attention, parts.mlp         what each block adds to the residual stream
    parts.before, parts.readout        the modules that run before and after the blocks
    parts[3].layout                    the fourth block
    """

    rows: tuple[Block, ...]
    before: tuple[str, ...]
    readout: tuple[str, ...]

    @property
    def blocks(self) -> tuple[str, ...]:
        """The addresses of all blocks."""
        return tuple(row.address for row in self.rows)

    @property
    def attention(self) -> tuple[str, ...]:
        """What the attention of each block adds, by address."""
        return tuple(row.attention for row in self.rows if row.attention is not None)

    @property
    def mlp(self) -> tuple[str, ...]:
        """What the MLP of each block adds, by address."""
        return tuple(row.mlp for row in self.rows if row.mlp is not None)

    @property
    def layout(self) -> Layout | None:
        """The layout that all blocks have; None if they differ."""
        layouts = {row.layout for row in self.rows}
        return layouts.pop() if len(layouts) == 1 else None

    def __getitem__(self, where: int | str) -> Block:
        """A block, by number or by address."""
        if isinstance(where, int):
            return self.rows[where]
        found = next((row for row in self.rows if row.address == where), None)
        if found is None:
            names = ", ".join(map(repr, self.blocks[:4]))
            raise NoSuchSiteError(f"there is no block {where!r}; the blocks are {names} …")
        return found

    def __iter__(self) -> Iterator[Block]:
        return iter(self.rows)

    def __len__(self) -> int:
        """How many blocks there are."""
        return len(self.rows)

    def table(self) -> Table:
        """One row per block."""
        rows = [
            (
                row.address,
                row.layout or "–",
                ", ".join(f"{write.role}: {write.address or '–'}" for write in row.writes) or "–",
            )
            for row in self.rows
        ]
        title = (
            f"{len(rows)} blocks; before them {_list(self.before)}; after them "
            f"{_list(self.readout)}"
        )
        return Table(title, ("block", "layout", "writes to the residual stream"), rows)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def roles(model: nn.Module, inputs: Any) -> Roles:
    """Which module does what: blocks, what their parts add to the residual stream, the readout.

        interp.roles(model, tokens)
        interp.roles(model, tokens).layout        # "sequential", "parallel" or "post-norm"

    The model runs once in evaluation, and everything is left as it was. Blocks are modules of one
    class in a list, each of which is given what the one before returned. What a block writes is
    read from the additions in it: a value that is added to the stream, and the outermost module
    that returned it. Values are compared, not names.

    Arguments:
        model: any `nn.Module` that is a stack of blocks.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.

    Returns:
        A table of `Block`, by number or by address.

    Raises:
        NoSuchSiteError: where no stack of blocks ran.

    Cost: one forward; copies of one block's values at a time.
    """
    tree = Tree(model)
    stacks = _stacks(tree.root)
    walker = Walker(stacks)
    run_once(model, inputs, walker, "nethook.interp.roles")
    walks = [walk for walk in walker.walks if walk.is_block]
    if not walks:
        raise NoSuchSiteError(
            "no stack of blocks ran: no list of modules of one class, each of which returns what "
            "it is given in the same shape. Address the modules by name instead."
        )
    chosen = _outermost(walks)
    return Roles(
        tuple(Block(walk.address, *walk.found(), walk.readers()) for walk in chosen),
        *walker.around([walk.address for walk in chosen]),
    )


def _stacks(root: nn.Module) -> set[int]:
    """The ids of modules that stand in a list with others of their class."""
    members: set[int] = set()
    for module in root.modules():
        children = list(module.children())
        if isinstance(module, nn.ModuleList | nn.Sequential) and children:
            kinds = {type(child) for child in children}
            if len(kinds) == 1 and any(True for _ in children[0].children()):
                members |= {id(child) for child in children}
    return members


def _outermost(walks: list[BlockWalk]) -> list[BlockWalk]:
    """Blocks that lie in no other; where some hold attention, those."""
    if any(walk.attentions for walk in walks):
        walks = [walk for walk in walks if walk.attentions]
    names = [walk.address for walk in walks]
    return [
        walk
        for walk in walks
        if not any(walk.address.startswith(f"{name}.") for name in names if name != walk.address)
    ]


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
