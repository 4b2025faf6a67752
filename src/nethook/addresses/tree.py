"""One walk over a model: every module once, with all the names it answers to.

The first name of a module is its address. A module that is reachable on several paths has several
names; inside a wrapper it also has a long spelling (`module.fc1`), which is accepted, never shown.
A trace walks the model each time it is opened, so the walk itself only collects names and modules;
`Site` objects are made for what is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, Generic, TypeVar

import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList, is_parametrized

from nethook.addresses.layer_weights import weights_of_layers
from nethook.addresses.tree_cache import Structure, recall, remember
from nethook.addresses.wrappers import inside, wrapped_attribute
from nethook.errors import InputsError
from nethook.kinds.keras_layers import hidden_layers, holds_weights, is_inside, is_keras_class
from nethook.torch_private import buffers_of, children_of, parameters_of

_NONE: tuple[str, ...] = ()
# What a plain model has of what is unusual. Never written to.
_NOTHING: Final[dict[int, list[str]]] = {}
_NO_ORDER: Final[set[int]] = set()
_NO_ID: Final[dict[int, int]] = {}


class Site:
    """A module of a model: its address, and all the names it answers to."""

    __slots__ = ("address", "long", "module", "names", "order")

    def __init__(
        self, order: int, address: str, module: nn.Module,
        names: tuple[str, ...], long: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.order = order  # its place in the model
        self.address = address
        self.module = module
        self.names = names
        self.long = long  # spellings with the wrappers' names in them

    def __repr__(self) -> str:
        return f"Site({self.address!r}, {type(self.module).__name__})"


class ParameterSite:
    """A parameter or buffer of a model: its address, all its names, and its owners."""

    __slots__ = ("address", "long", "names", "order", "owners", "tensor")

    def __init__(self, order: int, address: str, tensor: torch.Tensor) -> None:
        self.order = order
        self.address = address
        self.tensor = tensor
        self.owners: tuple[Site, ...] = ()  # several where a weight is tied
        self.names: tuple[str, ...] = ()
        self.long: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ParameterSite({self.address!r}, {type(self.tensor).__name__})"


AnySite = TypeVar("AnySite", Site, ParameterSite)
T = TypeVar("T")


class Index(Generic[AnySite]):
    """Sites of one kind in model order, and who answers to which name."""

    def __init__(self, sites: list[AnySite]) -> None:
        self._sites: list[AnySite] = sites
        self._by_name: dict[str, AnySite] | None = None

    @property
    def sites(self) -> list[AnySite]:
        """Every site."""
        return self._sites

    def names(self) -> dict[str, AnySite]:
        """Every name with its site: names in model order, then long spellings."""
        if self._by_name is None:
            self._by_name = {}
            for spellings in ("names", "long"):
                for site in self.sites:
                    for name in getattr(site, spellings):
                        self._by_name.setdefault(name, site)
        return self._by_name

    def shown(self) -> list[str]:
        """Every name in model order, without the long spellings."""
        return [name for site in self.sites for name in site.names]

    def find(self, name: str) -> AnySite | None:
        """The site of that very name; None if there is none."""
        return self.names().get(name)

    def match(self, expression: re.Pattern[str]) -> list[tuple[AnySite, str]]:
        """The sites that have a name which matches as a whole, each with the first such name."""
        matches = list(self._matching(expression, "names"))
        # The long spelling counts only where the bare one finds nothing: otherwise `**` would
        # find the root of a wrapped model, as `module`.
        return matches or [(site, site.address) for site, _ in self._matching(expression, "long")]

    def _matching(
        self, expression: re.Pattern[str], spellings: str
    ) -> Iterator[tuple[AnySite, str]]:
        for site in self.sites:
            for name in getattr(site, spellings):
                if expression.fullmatch(name):
                    yield site, name
                    break


class Parameters(Index[ParameterSite]):
    """The parameters and buffers of a model, in model order."""

    def __init__(self, sites: list[ParameterSite]) -> None:
        super().__init__(sites)
        self._by_module: dict[str, list[tuple[ParameterSite, str]]] | None = None

    def below(self, module: str) -> list[tuple[ParameterSite, str]]:
        """What lies below the module of that name, each with the name that says so."""
        if self._by_module is None:
            self._by_module = {}
            for site in self.sites:
                for name in site.names:
                    above = name
                    while above:  # of `a.b.weight` these are `a.b`, `a` and the root
                        above = above.rpartition(".")[0]
                        self._by_module.setdefault(above, []).append((site, name))
        return self._by_module.get(module, [])


class Tree(Index[Site]):
    """The modules of a model, in model order."""

    def __init__(self, model: nn.Module) -> None:
        if not isinstance(model, nn.Module):
            raise InputsError(
                f"`model` must be an nn.Module; got {type(model).__name__}.{_hint(model)}"
            )
        self._walk = _Walk(model)
        self.root: nn.Module = self._walk.modules[0]  # the model itself, without wrappers
        self._made: dict[int, Site] = {}
        self._by_name = None
        self._orders: dict[str, int] | None = None
        # Wrappers and the address they stand at: they may hold buffers and hooks of their own.
        self.wrappers = [(name, wrapper) for name, _, wrapper in self._walk.wrapped]

    @property
    def sites(self) -> list[Site]:
        """Every module."""
        return self.sites_at(range(len(self._walk.modules)))

    @property
    def addresses(self) -> list[str]:
        """Every address, in the order of `sites`."""
        return self._walk.addresses

    def other_names(self) -> dict[int, tuple[str, ...]]:
        """The names and long spellings of modules beside their addresses, by order."""
        walk = self._walk
        return {
            order: (*walk.aliases.get(order, ()), *walk.long.get(order, ()))
            for order in walk.aliases.keys() | walk.long.keys()
        }

    @property
    def modules(self) -> list[nn.Module]:
        """Every module object, in the order of `sites`."""
        return self._walk.modules

    def leaves(self) -> list[Site]:
        """Every module without modules below it, parametrisations not counted."""
        return self.sites_at(
            order
            for order, module in enumerate(self._walk.modules)
            if order not in self._walk.internal and _is_leaf(module)
        )

    def has(self, *classes: type[nn.Module]) -> bool:
        """Whether any module is of one of these classes."""
        types = self._walk.types
        return self.once(classes, lambda: any(issubclass(cls, classes) for cls in types))

    def once(self, question: Hashable, answer: Callable[[], T]) -> T:
        """`answer()`, remembered for as long as the model looks like this.

        The answer must follow from the names and classes of the modules, and hold no module.
        """
        structure = self._walk.structure
        return answer() if structure is None else structure.once(question, answer)

    def find_module(self, module: nn.Module) -> Site | None:
        """The site of a module object (or of the wrapper around it); None if it is elsewhere."""
        order = self._walk.order_of(module)
        return None if order is None else self._site(order)

    def find(self, name: str) -> Site | None:
        """As in `Index`, without making a site for what has another name."""
        if self._orders is None:
            # One look does not pay for an index of the whole model; a second one does.
            self._orders = {}
            addresses = self._walk.addresses
            order = addresses.index(name) if name in addresses else None
        else:
            if not self._orders:
                self._orders = {
                    address: order for order, address in enumerate(self._walk.addresses)
                }
            order = self._orders.get(name)
        return self._site(order) if order is not None else super().find(name)

    def match(self, expression: re.Pattern[str]) -> list[tuple[Site, str]]:
        """As in `Index`, without making a site for what does not match."""
        if self._walk.structure is None:
            return super().match(expression)
        names, matches = self._walk.addresses, expression.fullmatch
        orders = self.once(
            expression, lambda: [order for order, name in enumerate(names) if matches(name)]
        )
        return [(site, site.address) for site in self.sites_at(orders)]

    def _site(self, order: int) -> Site:
        return self.sites_at((order,))[0]

    def sites_at(self, orders: Iterable[int]) -> list[Site]:
        """The modules that stand at these places in the model."""
        made, walk = self._made, self._walk
        sites = []
        for order in orders:
            site = made.get(order)
            if site is None:
                address = walk.addresses[order]
                names = (address, *walk.aliases[order]) if order in walk.aliases else (address,)
                long = tuple(walk.long[order]) if order in walk.long else _NONE
                site = made[order] = Site(order, address, walk.modules[order], names, long)
            sites.append(site)
        return sites

    def parameters(self) -> Parameters:
        """Every parameter and buffer once, with all its names, in model order."""
        sites: dict[int, ParameterSite] = {}
        walk = self._walk
        lists = (
            weights_of_layers(dict(zip(walk.addresses, walk.modules, strict=True)))
            if any(map(is_keras_class, walk.types))
            else {}
        )
        for site in self.sites:
            above, _, last = site.address.rpartition(".")
            if above in lists and holds_weights(last):
                self._add_those_of_layer(sites, above, lists[above])
                continue
            owners = self._owners(site)
            for address in site.names:
                for name, tensor in _own_tensors(site.module, address):
                    entry = _entry(sites, name, tensor)
                    entry.names += (name,)
                    entry.owners += owners
            for address in site.long:
                for name, tensor in _own_tensors(site.module, address):
                    _entry(sites, name, tensor).long += (name,)
        self._add_those_of_wrappers(sites)
        return Parameters(list(sites.values()))

    def _add_those_of_layer(
        self, sites: dict[int, ParameterSite], layer: str, weights: dict[str, torch.Tensor]
    ) -> None:
        owner = self.find(layer)
        if owner is None:
            return
        for own, tensor in weights.items():
            names = tuple(f"{name}.{own}".lstrip(".") for name in owner.names)
            entry = _entry(sites, names[0], tensor)
            entry.names += names
            entry.owners += (owner,)

    def _add_those_of_wrappers(self, sites: dict[int, ParameterSite]) -> None:
        for address, long_address, wrapper in self._walk.wrapped:
            own, spelt_long = _own_tensors(wrapper, address), _own_tensors(wrapper, long_address)
            for (name, tensor), (long, _) in zip(own, spelt_long, strict=True):
                # What the bare model has keeps its name.
                taken = {name for site in sites.values() for name in site.names}
                free = next((spelling for spelling in (name, long) if spelling not in taken), None)
                if free is not None:
                    entry = _entry(sites, free, tensor)
                    entry.names += (free,)
                    entry.long += (long,)

    def _owners(self, site: Site) -> tuple[Site, ...]:
        """The modules that own a module's tensors: also the one that is parametrised by it."""
        parametrized = _parametrized(site.module, site.address)
        owner = None if parametrized is None else self.find(parametrized[0])
        return (site,) if owner is None else (owner, site)


class _Walk:
    """Collects names and modules.

    Nearly every model is plain: no module is shared, wrapped or parametrised. So the first walk
    only collects, and what it found is checked all at once; where anything is unusual, a second
    walk looks at each module by itself. What a plain model looks like is remembered.
    """

    def __init__(self, model: nn.Module) -> None:
        recalled = recall(model)
        if recalled is not None:
            self._take(*recalled)
            return
        self.structure: Structure | None = None  # of a plain model
        self.addresses: list[str] = []
        self.modules: list[nn.Module] = []
        self.aliases: dict[int, list[str]] = {}  # by order
        self.long: dict[int, list[str]] = {}  # by order
        self.internal: set[int] = set()  # parts of parametrisations, unknown to the bare model
        self.wrapped: list[tuple[str, str, nn.Module]] = []  # name, long spelling, wrapper
        self.types: dict[type[nn.Module], bool] = {}  # and whether the class is unusual
        self._inside: dict[int, int] = {}  # id of a wrapper -> id of what it wraps
        self._seen: set[int] = set()  # ids
        self._path: set[int] = set()  # ids from the root to here: a cycle is entered once
        self._orders: dict[int, int] = {}
        if self._is_plain(model):
            self.structure = remember(model, self.addresses, self.modules, self.types)
        else:
            self.addresses.clear()
            self.modules.clear()
            self._unusual(model, "", "", internal=False)

    def _take(self, structure: Structure, modules: list[nn.Module]) -> None:
        """The model is plain and looks as it did: nothing will be added to these."""
        self.structure = structure
        self.modules = modules
        self.addresses, self.types = structure.addresses, structure.classes
        self.aliases = self.long = _NOTHING
        self.internal = _NO_ORDER
        self.wrapped = []
        self._inside = _NO_ID
        self._orders = {}

    def _is_plain(self, model: nn.Module) -> bool:
        self.addresses.append("")
        self.modules.append(model)
        try:
            usual = "parametrizations" not in children_of(model) and self._collect(model, "")
        except RecursionError:  # a module that has itself below it
            return False
        if not usual or len(set(map(id, self.modules))) < len(self.modules):
            return False
        types = dict.fromkeys(map(type, self.modules), False)
        if any(map(_is_unusual, types)):
            return False
        self.types = types
        return True

    def _collect(self, module: nn.Module, prefix: str) -> bool:
        """Adds what lies below a module; whether all of it is plain so far."""
        add_address, add_module = self.addresses.append, self.modules.append
        for key, child in children_of(module).items():
            if child is None:
                return False
            name = prefix + key
            add_address(name)
            add_module(child)
            below = children_of(child)
            if below and ("parametrizations" in below or not self._collect(child, name + ".")):
                return False
        return True

    def order_of(self, module: nn.Module) -> int | None:
        """The order of a module, or of what a wrapper wraps."""
        for order in range(len(self._orders), len(self.modules)):
            self._orders[id(self.modules[order])] = order
        key = id(module)
        return self._orders.get(self._inside.get(key, key))

    def _below(self, module: nn.Module, prefix: str) -> None:
        """Visits what lies below a module, as long as that is nothing unusual."""
        types, seen = self.types, self._seen
        add_address, add_module = self.addresses.append, self.modules.append
        for key, child in children_of(module).items():
            if child is None:
                continue
            cls = type(child)
            unusual = types.get(cls)
            if unusual is None:
                unusual = types[cls] = _is_unusual(cls)
            below = children_of(child)
            name = prefix + key
            ident = id(child)
            if unusual or ident in seen or (below and "parametrizations" in below):
                self._unusual(child, name, name, internal=False)
                continue
            seen.add(ident)
            add_address(name)
            add_module(child)
            if below:
                self._path.add(ident)
                self._below(child, name + ".")
                self._path.discard(ident)

    def _unusual(self, module: nn.Module, name: str, long: str, *, internal: bool) -> None:
        """Visits a module that may be wrapped, shared, parametrised, or part of a cycle."""
        outer: list[int] = []
        spellings = [long]
        while (wrapped := inside(module)) is not None:
            outer.append(id(module))
            self.wrapped.append((name, long, module))
            attribute, module = wrapped
            long = f"{long}.{attribute}" if long else attribute
            spellings.append(long)
        key = id(module)
        self._inside.update(dict.fromkeys(outer, key))
        if key in self._path:
            return
        hides = is_keras_class(type(module))
        self.types.setdefault(type(module), hides)
        first = key not in self._seen
        if first:
            order = len(self.modules)
            self._seen.add(key)
            self.addresses.append(name)
            self.modules.append(module)
            if internal:
                self.internal.add(order)
        else:
            order = self.order_of(module) or 0
            if name != self.addresses[order]:
                self.aliases.setdefault(order, []).append(name)
            if not internal:
                self.internal.discard(order)  # the bare model knows it, by this other name
        if long != name:
            self.long.setdefault(order, []).extend(
                spelling for spelling in spellings if spelling != name
            )
        self._path.add(key)
        prefix, long_prefix = f"{name}." if name else "", f"{long}." if long else ""
        parametrized = "parametrizations" in children_of(module) and is_parametrized(module)
        if first and long == name and not parametrized and not internal and not hides:
            self._below(module, prefix)
        else:
            hidden = hidden_layers(module) if hides and not internal else {}
            for attribute, child in (children_of(module) | hidden).items():
                if child is not None:
                    within = (
                        internal
                        or (parametrized and attribute == "parametrizations")
                        or (hides and is_inside(attribute))
                    )
                    self._unusual(
                        child, prefix + attribute, long_prefix + attribute, internal=within
                    )
        self._path.discard(key)


def _hint(model: object) -> str:
    """What to type instead of something that is not a model."""
    if isinstance(model, type) and issubclass(model, nn.Module):
        return f" That is the class: write {model.__name__}(...)."
    return " Pass the model itself."


def _is_unusual(cls: type[nn.Module]) -> bool:
    """Whether what a module of this class has below it is not all that torch says."""
    return wrapped_attribute(cls) is not None or is_keras_class(cls)


def _is_leaf(module: nn.Module) -> bool:
    if is_keras_class(type(module)):
        return all(map(is_inside, children_of(module))) and not hidden_layers(module)
    if not children_of(module):
        return True
    below = [key for key, child in children_of(module).items() if child is not None]
    return not below or (below == ["parametrizations"] and is_parametrized(module))


def _own_tensors(module: nn.Module, address: str) -> Iterator[tuple[str, torch.Tensor]]:
    prefix = f"{address}." if address else ""
    for own in (parameters_of(module), buffers_of(module)):
        for key, tensor in own.items():
            if tensor is None:
                continue
            parametrized = _parametrized(module, address) if key == "original" else None
            if parametrized is not None:
                # `fc.parametrizations.weight.original` is what the bare model calls `fc.weight`.
                yield ".".join(filter(None, parametrized)), tensor
            yield prefix + key, tensor


def _parametrized(module: nn.Module, address: str) -> tuple[str, str] | None:
    """The module and the name of its tensor for which a `ParametrizationList` stands."""
    above, _, name = address.rpartition(".")
    owner, _, last = above.rpartition(".")
    is_list = isinstance(module, ParametrizationList) and last == "parametrizations"
    return (owner, name) if is_list else None


def _entry(sites: dict[int, ParameterSite], name: str, tensor: torch.Tensor) -> ParameterSite:
    site = sites.get(id(tensor))
    if site is None:
        site = sites[id(tensor)] = ParameterSite(len(sites), name, tensor)
    return site
