"""The sites of a run in the order in which they ran, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nethook.drawing.data import Row
from nethook.runs.reading.rank_file import Site
from nethook.runs.reading.run import Run

_NEVER = 1 << 40  # the place of what was never called


@dataclass(frozen=True)
class Order:
    """Where each address stands: modules by their first call, parameters by their owner."""

    sites: dict[str, Site] = field(repr=False)
    places: dict[str, tuple[int, int]] = field(repr=False)

    def sorted(self, addresses: Iterable[str]) -> list[str]:
        """Addresses in order of execution; those that nothing is known of stand last."""
        return sorted(
            dict.fromkeys(addresses), key=lambda address: self.places.get(address, (_NEVER, 0))
        )

    def info(self, address: str) -> dict[str, Any]:
        """What the run says of a site."""
        site = self.sites.get(address)
        return site.info if site else {}

    def kind(self, address: str) -> str:
        """The class of a module."""
        site = self.sites.get(address)
        return site.kind if site else ""

    def parameters(self, address: str) -> list[str]:
        """The addresses of a module's own parameters."""
        own = self.info(address).get("parameters")
        return [str(name) for name in own] if isinstance(own, list) else []


def order_of(run: Run) -> Order:
    """The order of a run's sites."""
    sites = {site.address: site for site in run.sites}
    places: dict[str, tuple[int, int]] = {}
    for index, site in enumerate(sites.values()):
        first = site.info.get("first_call")
        was_called = isinstance(first, int) and not isinstance(first, bool) and 0 <= first < _NEVER
        # Without a word on calls, sites stand as they were recorded.
        ran = (
            int(first)
            if was_called and first is not None
            else (_NEVER - 1 if _tells(site) else index)
        )
        places[site.address] = (ran, index)
    for index, site in enumerate(sites.values()):
        if site.kind == "Parameter":
            owners = site.info.get("owners")
            of = [places[own] for own in _strings(owners) if own in places]
            if of:
                places[site.address] = (min(of)[0], index)
    return Order(sites, places)


def _tells(site: Site) -> bool:
    """Whether whoever wrote the site keeps track of calls."""
    return "order" in site.info and site.kind != "Parameter"


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def tree_rows(order: Order) -> list[Row]:
    """The modules of the model as a tree, each with its shape and its parameters."""
    modules = {a: site for a, site in order.sites.items() if site.kind != "Parameter"}
    names = _with_parents(order.sorted(modules))
    elements = {
        address: _elements(site)
        for address, site in order.sites.items()
        if site.kind == "Parameter"
    }
    own = {
        name: sum(elements.get(parameter, 0) for parameter in order.parameters(name))
        for name in names
    }
    rows = []
    for name in names:
        below = [
            other for other in names if other == name or other.startswith(f"{name}.") or not name
        ]
        site = modules.get(name)
        info = site.info if site else {}
        calls = info.get("calls")
        never = isinstance(calls, dict) and not any(calls.values())
        rows.append(
            Row(
                name,
                site.kind if site else "",
                0 if not name else name.count(".") + ("" in modules),
                shape_text(info.get("shape")),
                sum(own[child] for child in below),
                "never called" if never else "",
            )
        )
    return rows


def shape_text(shape: Any) -> str:
    """`64 × 20 × 26 × 26`."""
    if isinstance(shape, list) and all(isinstance(size, int) for size in shape):
        return " × ".join(f"{size}" for size in shape) if shape else "scalar"
    return ""


def _elements(site: Site) -> int:
    elements = site.info.get("elements")
    return elements if isinstance(elements, int) and 0 <= elements < 1 << 53 else 0


def _with_parents(names: list[str]) -> list[str]:
    """Names in their order, each after the modules it is in; those of one module together."""
    children: dict[str, dict[str, None]] = {}
    for name in names:
        parts = name.split(".") if name else []
        for depth in range(len(parts)):
            parent = ".".join(parts[:depth])
            children.setdefault(parent, {})[".".join(parts[: depth + 1])] = None
    ordered: list[str] = [""] if "" in names else []
    waiting = list(reversed(children.get("", {})))
    while waiting:
        name = waiting.pop()
        ordered.append(name)
        waiting += reversed(children.get(name, {}))
    return ordered
