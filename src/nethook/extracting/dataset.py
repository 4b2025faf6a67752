"""`load_features`: features on disk as a data set with random access."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset

from nethook.addresses.suggest import close_names, listing
from nethook.errors import NoSuchSiteError, NotFeaturesError
from nethook.extracting.columns import NUMBERS, PREFIX, Kind, read_text
from nethook.extracting.index import find_index, open_shards, sorted_rows, stored_numbers

if TYPE_CHECKING:
    from nethook.text.table import Table

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def load_features(folder: str | Path) -> Features:
    """Opens features that `extract` wrote, without reading them into memory.

        data = nethook.load_features("features/")
        x, label = data[17]                           # any row; x is a dict for several sites
        data.tensor("layer4"), data.labels, data.ids  # whole columns
        DataLoader(data, batch_size=256, shuffle=True, num_workers=2)

    Every name, size and header is checked before a file is mapped, so a folder from a stranger is
    safe to open; nothing in it is run.

    Raises:
        NoSuchFeaturesError: where there are none, or the extraction has not ended.
        NotFeaturesError: where the index or a shard is damaged, foreign or hostile.
    """
    return Features(folder)


class Features(Dataset[Any]):
    """Features on disk: row i belongs to one sample, in the order of the data set.

    `data[i]` is `(features, label)`, or the features alone where there are no labels; the features
    are a tensor for one site, and a dict by site for several. The files are mapped when they are
    first read, in each process by itself, so the data set can be given to workers.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._index = find_index(self.folder)
        self._shards = open_shards(self.folder, self._index)
        self._starts = [0, *accumulate(entry.rows for entry in self._index.shards)]
        self._rows: torch.Tensor | None = None
        self._mapped: dict[int, dict[str, torch.Tensor]] = {}
        if self._index.order == "index":
            unique = self._index.setup.get("world") != 1
            self._rows = sorted_rows(stored_numbers(self._shards), unique=unique)
            if len(self._rows) != self._index.rows:
                raise NotFeaturesError(
                    f"the index counts {self._index.rows:,} rows, and the shards hold "
                    f"{len(self._rows):,} different samples."
                )

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites whose features are there."""
        names = self._index.kinds
        return tuple(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))

    @property
    def setup(self) -> dict[str, Any]:
        """What the features were extracted with, as plain data."""
        return dict(self._index.setup)

    def __len__(self) -> int:
        return self._index.rows

    def __getitem__(self, row: int) -> Any:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} was asked for, and there are {len(self):,}.")
        position = self._locate(range(len(self))[row])
        by_site = {site: self._value(PREFIX + site, *position) for site in self.sites}
        features = next(iter(by_site.values())) if len(by_site) == 1 else by_site
        return (features, self._value("labels", *position)) if self._has("labels") else features

    def tensor(self, site: str) -> torch.Tensor:
        """All rows of one site, as one tensor.

        Where they lie in one shard, in order, the tensor is the mapped file and costs no memory
        until it is read; otherwise it is put together in memory.
        """
        if PREFIX + site not in self._index.kinds:
            close = close_names(site, list(self.sites)) or list(self.sites)
            raise NoSuchSiteError(f"no features of {site!r} are here. Closest: {listing(close)}.")
        column = self._column(PREFIX + site)
        assert isinstance(column, torch.Tensor)
        return column

    @property
    def labels(self) -> torch.Tensor | list[str] | None:
        """The labels of all rows; None where the batches had none."""
        return self._column("labels") if self._has("labels") else None

    @property
    def ids(self) -> torch.Tensor | list[str]:
        """The ids of all rows; where the batches had none, their numbers in the data set."""
        return self._column("ids" if self._has("ids") else NUMBERS)

    @property
    def numbers(self) -> torch.Tensor:
        """The number of each row's sample in the data set (or, without one, of its arrival)."""
        column = self._column(NUMBERS)
        assert isinstance(column, torch.Tensor)
        return column

    def to_dict(self) -> dict[str, Any]:
        """What there is, as plain data."""
        return self._index.to_dict()

    def _has(self, name: str) -> bool:
        return name in self._index.kinds

    def _locate(self, row: int) -> tuple[int, int]:
        """The shard of a row, and the row in it."""
        stored = row if self._rows is None else int(self._rows[row])
        shard = bisect_right(self._starts, stored) - 1
        return shard, stored - self._starts[shard]

    def _tensors(self, shard: int) -> dict[str, torch.Tensor]:
        if shard not in self._mapped:
            self._mapped[shard] = self._shards[shard].map()
        return self._mapped[shard]

    def _value(self, name: str, shard: int, row: int) -> Any:
        if self._index.kinds[name].dtype is None:
            return read_text(self._tensors(shard), name, row)
        # A copy: a view would take the whole shard with it to another process.
        return self._tensors(shard)[name][row].clone()

    def _column(self, name: str) -> torch.Tensor | list[str]:
        kind = self._index.kinds.get(name, Kind(torch.int64))
        if kind.dtype is None:
            positions = [self._locate(row) for row in range(len(self))]
            return [read_text(self._tensors(shard), name, row) for shard, row in positions]
        if len(self._shards) == 1 and self._rows is None:
            return self._tensors(0)[name]
        # Copied as whole numbers of the same size: torch cannot index every type.
        bits = _BITS[kind.dtype.itemsize]
        whole = torch.empty((len(self), *kind.shape), dtype=bits)
        for shard, (start, end) in enumerate(zip(self._starts, self._starts[1:], strict=False)):
            # Not kept mapped: one shard at a time is enough.
            stored = self._shards[shard].map()[name].view(bits)
            if self._rows is None:
                whole[start:end] = stored
            else:
                here = (self._rows >= start) & (self._rows < end)
                whole[here] = stored[self._rows[here] - start]
        return whole.view(kind.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_mapped": {}}  # each process maps the files itself

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        from nethook.text.numbers import count, size
        from nethook.text.table import Table

        rows = []
        for name, kind in self._index.kinds.items():
            shown = name.removeprefix(PREFIX) or '""'
            dtype = "text" if kind.dtype is None else str(kind.dtype).removeprefix("torch.")
            shape = "" if kind.dtype is None else str(kind.shape)
            rows.append((shown, dtype, shape, size(kind.bytes * len(self))))
        stored = sum(entry.bytes for entry in self._index.shards)
        title = (
            f"features of {count(len(self), 'sample')} in {count(len(self._shards), 'shard')}, "
            f"{size(stored)}"
        )
        return Table(title, ("column", "dtype", "one row", "all"), rows, frozenset(["all"]))
