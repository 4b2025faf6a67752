"""Rows that join a run on its way: cells of several sites in one run, each from its own site on.

A run begins with the copies whose cells are at the first site. Where the next site returns, copies
for its cells join, with what it returned in the base run. So no copy is computed before its site.

That is right where nothing but a site's value carries rows from before it to after it: a residual
stream is such a value, and a branch of it is not. Nobody declares which it is. The last copy has no
change, and new ones join before it, so that it always stands where the latest do: whatever treats
rows by a number from before they joined fails, or treats that copy wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nethook.addresses.nested import map_tensors, tensors
from nethook.interp.sweeping.batches import Dims, repeated
from nethook.interp.sweeping.sites import Site


class DoesNotJoin(Exception):  # noqa: N818  it ends an attempt, and is no error
    """Rows that join later do not fit this model."""


@dataclass
class Joins:
    """How many copies join at which site of a run."""

    at: dict[str, int]  # by address
    dims: dict[str, Dims]
    rows: int

    def grown(self, site: Site, output: Any, copies: int) -> Any:
        """An output of so many copies with those that join, before the last."""
        dims = self.dims[site.address]
        alone = [tensor for _, tensor in tensors(site.called.outputs[0])]
        if len(tensors(output)) != len(alone):
            raise DoesNotJoin(site.address)
        each: Iterator[tuple[torch.Tensor, int | None]] = zip(alone, dims, strict=True)

        def join(tensor: torch.Tensor) -> torch.Tensor:
            base, dim = next(each)
            if dim is None:
                return tensor
            before = (copies - 1) * self.rows
            if tensor.shape[dim] != before + self.rows:
                raise DoesNotJoin(site.address)
            new = repeated(base, dim, self.at[site.address])
            return torch.cat([*_around(tensor, dim, before, new)], dim)

        return map_tensors(join, output)


def _around(
    tensor: torch.Tensor, dim: int, before: int, new: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    last = tensor.shape[dim] - before
    return tensor.narrow(dim, 0, before), new, tensor.narrow(dim, before, last)


def may_join(sites: Sequence[Site], dims: dict[str, Dims]) -> bool:
    """Whether it is worth an attempt: several modules, none inside another, that return rows.

    Operations are left out: what they return is nearly always added to something.
    """
    names = [site.address for site in sites]
    return len(sites) > 1 and all(
        site.module is not None
        and site.address in dims
        and any(dim is not None for dim in dims[site.address])
        and not any(name.startswith(f"{site.address}.") for name in names)
        for site in sites
    )
