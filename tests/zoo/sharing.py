"""One module or one weight in several places."""

from __future__ import annotations

from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


class CalledTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.shared(self.shared(x).tanh())


class TwoNames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.decoder = self.encoder
        self.again = nn.ModuleDict({"inner": self.encoder[0]})

    def forward(self, x: Tensor) -> Tensor:
        return self.again["inner"](self.decoder(self.encoder(x)))


class TiedWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, index: Tensor) -> Tensor:
        return self.head(self.embed(index))


class WeightOnItsOwn(nn.Module):
    """A parameter that two modules own and a third reads without owning it."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)
        self.right.weight = self.left.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.right(self.left(x)) @ self.left.weight


class BackReference(nn.Module):
    """A child that knows its parent, outside of the module tree, and calls back."""

    def __init__(self, parent: nn.Module) -> None:
        super().__init__()
        self.parent = [parent]  # a list, so that the parent does not become a child of its child
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + self.parent[0].helper(x)


class Parent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.helper = nn.Linear(4, 4)
        self.child = BackReference(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.child(x)


class EqualToAll(nn.Linear):
    """Says that it equals every other of its kind: sets and dicts by equality take them for one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EqualToAll)

    def __hash__(self) -> int:
        return 7


class SharedActivation(nn.Module):
    """One in-place activation object after every layer, as many a ResNet has it."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(4, 4)
        self.two = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.two(self.act(self.one(x))) + x)


def _words(model: nn.Module, given: Given) -> object:
    return model(given.ints(6, 2, 3))


EXHIBITS = (
    Exhibit("shared_called_twice", "One module, two calls in one forward.", CalledTwice),
    Exhibit("two_names", "One module under three names, a child of it under two more.", TwoNames),
    Exhibit("tied_weights", "Embedding and output layer share one weight.", TiedWeights, _words),
    Exhibit(
        "weight_used_outside",
        "A weight of two owners is also read by their parent, outside of any call.",
        WeightOnItsOwn,
    ),
    Exhibit("back_reference", "A child calls a module of its parent: a reference cycle.", Parent),
    Exhibit(
        "equal_modules",
        "Different modules that compare equal and hash alike.",
        lambda: nn.Sequential(EqualToAll(4, 4), nn.Tanh(), EqualToAll(4, 2)),
    ),
    Exhibit(
        "shared_inplace_activation", "One in-place ReLU serves several layers.", SharedActivation
    ),
)
