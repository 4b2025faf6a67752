"""Outputs that are more than one tensor."""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


class Point(NamedTuple):
    mean: Tensor
    spread: Tensor | None = None


@dataclass
class Plain:
    logits: Tensor
    extra: dict[str, Any]
    note: str = "plain"


@dataclass(frozen=True)
class Frozen:
    logits: Tensor
    hidden: tuple[Tensor, ...]


@dataclass(slots=True)
class Slotted:
    logits: Tensor
    count: int


@dataclass
class Derived:
    """A dataclass that cannot be built again from its fields by calling it."""

    logits: Tensor
    total: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.logits.sum()


class Opaque:
    """An ordinary object that happens to hold a tensor: nobody has to look inside."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


class Colour(enum.Enum):
    RED = 1


class Labelled(tuple[Tensor, ...]):
    """A tuple whose constructor takes more than its items."""

    label: str

    def __new__(cls, items: tuple[Tensor, ...], label: str) -> Labelled:
        made = super().__new__(cls, items)
        made.label = label
        return made


class Counted(dict[str, Tensor]):
    """A dict with a state of its own."""

    def __init__(self, owner: str, **items: Tensor) -> None:
        super().__init__(items)
        self.owner = owner


class Head(nn.Module):
    """A layer whose output a function packs; packed by the child, unpacked by the parent."""

    def __init__(self, pack: Any) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self._pack = pack

    def forward(self, x: Tensor) -> Any:
        return self._pack(self.fc(x))


class Packed(nn.Module):
    """Calls a head and returns what it returned, so that the structure is an output twice over."""

    def __init__(self, pack: Any) -> None:
        super().__init__()
        self.head = Head(pack)

    def forward(self, x: Tensor) -> Any:
        return self.head(x)


def packed(name: str, mechanism: str, pack: Any, **options: Any) -> Exhibit:
    return Exhibit(name, mechanism, lambda: Packed(pack), **options)


def _circle(y: Tensor) -> list[Any]:
    circle: list[Any] = [y]
    circle.append(circle)
    return circle


def _deep(y: Tensor) -> Any:
    value: Any = y
    for level in range(60):
        value = [value] if level % 2 else {"in": value}
    return value


class DictChangedByCaller(nn.Module):
    """The caller pops from and adds to the very dict that its child returned."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Head(lambda y: {"a": y, "b": [y * 2], "c": 1})

    def forward(self, x: Tensor) -> Tensor:
        out = self.head(x)
        a = out.pop("a")
        out["d"] = a * 3
        out["b"].append(out["d"])
        out["b"][0].mul_(2)
        return a + sum(out["b"])


class Streams(nn.Module):
    """A child that returns a generator, which does its work when the caller reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Head(self._parts)

    @staticmethod
    def _parts(y: Tensor) -> Iterator[Tensor]:
        for index in range(y.shape[-1]):
            yield y[..., index]

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(list(self.head(x)), 0)


class PlainOnly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = Head(lambda y: y.shape[0])

    def forward(self, x: Tensor) -> tuple[int, str, float]:
        return self.head(x), "three", float(x.detach().sum())


def _gpt2(**options: Any) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 11, "n_positions": 8}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, **options))


def _tokens(model: nn.Module, given: Given) -> object:
    ids = given.ints(11, 2, 5)
    return model(input_ids=ids, labels=ids, output_hidden_states=True)


@torch.no_grad()
def _no_grad_tuple(model: nn.Module, given: Given) -> object:
    return model(given.ints(11, 2, 5), return_dict=False)


EXHIBITS = (
    packed(
        "nested_mix",
        "Tuples in lists in dicts, with tensors at every level.",
        lambda y: ([y, (y * 2, {"deep": [y + 1]})], {"top": y - 1}),
    ),
    packed("named_tuple", "A named tuple, one field of it None.", lambda y: Point(y)),
    packed(
        "dataclass_plain",
        "A dataclass with a dict and a string in it.",
        lambda y: Plain(y, {"h": y * 2}),
    ),
    packed(
        "dataclass_frozen",
        "A frozen dataclass refuses assignment.",
        lambda y: Frozen(y, (y * 2, y * 3)),
    ),
    packed("dataclass_slots", "A dataclass with slots has no `__dict__`.", lambda y: Slotted(y, 3)),
    packed(
        "dataclass_derived",
        "A dataclass whose `__post_init__` makes a field from others.",
        lambda y: Derived(y),
    ),
    packed(
        "none_among",
        "None, numbers and strings among the tensors.",
        lambda y: (y, None, 3, "s", [None, y * 2]),
    ),
    packed(
        "empty_containers", "Empty tuple, list and dict beside a tensor.", lambda y: ((), [], {}, y)
    ),
    packed(
        "same_tensor_twice", "One tensor in two places of an output.", lambda y: (y, {"again": y})
    ),
    packed(
        "dict_kinds",
        "OrderedDict, defaultdict, read-only mapping, dict with numbers as keys.",
        lambda y: (
            OrderedDict(a=y),
            defaultdict(list, b=[y * 2]),
            MappingProxyType({"c": y.detach()}),
            {0: y * 3, (1, 2): y * 4, None: y * 5},
        ),
    ),
    packed(
        "container_subclasses",
        "Subclasses of tuple and dict whose constructors take other arguments.",
        lambda y: [Labelled((y, y * 2), label="two"), Counted("me", z=y * 3)],
    ),
    packed(
        "structseq",
        "`torch.max` returns a struct sequence, which is built from one sequence, not from fields.",
        lambda y: y.max(dim=-1),
    ),
    packed(
        "shape_output", "A `torch.Size` is a tuple that holds only numbers.", lambda y: (y.shape, y)
    ),
    packed(
        "opaque_object",
        "An object of an unknown class that holds a tensor.",
        lambda y: [Opaque(y), y],
    ),
    packed(
        "enum_and_set",
        "An enum member, a set, a range, a type in the output.",
        lambda y: (Colour.RED, {1, 2}, range(3), Plain, y),
    ),
    packed("circular_output", "A list that contains itself.", _circle),
    packed("deep_output", "Sixty levels of lists and dicts around one tensor.", _deep),
    Exhibit(
        "dict_changed_by_caller",
        "The caller changes the dict that a child returned.",
        DictChangedByCaller,
    ),
    Exhibit("generator_output", "A child returns a generator of tensors.", Streams),
    Exhibit("plain_values_only", "No tensor in any output.", PlainOnly, differentiable=False),
    Exhibit(
        "model_output",
        "`transformers` GPT-2: ModelOutput with loss, logits, hidden states and a cache object.",
        _gpt2,
        _tokens,
        needs=["transformers"],
    ),
    Exhibit(
        "model_output_as_tuple",
        "The same model told to return a plain tuple, in eval mode without gradient.",
        _gpt2,
        _no_grad_tuple,
        differentiable=False,
        train=False,
        needs=["transformers"],
    ),
)
