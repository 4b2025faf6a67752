"""Values that are written over after a module returned them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


def _image(model: nn.Module, given: Given) -> object:
    return model(given.floats(2, 2, 5, 5))


def _sequence(model: nn.Module, given: Given) -> object:
    return model(given.floats(2, 3, 4))


class Steps(nn.Module):
    """Two layers with room in between for what a subclass does there."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def between(self, x: Tensor, y: Tensor) -> Tensor:
        return y

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.between(x, self.first(x)))


class ResidualOnView(Steps):
    def between(self, x: Tensor, y: Tensor) -> Tensor:
        y += x  # y is a view: Linear on a 3-D input reshapes
        return y


class SliceWritten(Steps):
    def between(self, x: Tensor, y: Tensor) -> Tensor:
        y[:, 0] = x[:, 1]
        y[:, 1:3] *= 2
        return y


class NarrowWritten(Steps):
    def between(self, x: Tensor, y: Tensor) -> Tensor:
        y.narrow(-1, 0, 2).add_(1)
        return y.relu_()


class DataWritten(Steps):
    def between(self, x: Tensor, y: Tensor) -> Tensor:
        y.data.clamp_(min=0)  # no version counter sees this
        return y


class DataReplaced(Steps):
    def between(self, x: Tensor, y: Tensor) -> Tensor:
        y.data = y.data * 2
        return y


class ShapeChanged(Steps):
    def between(self, x: Tensor, y: Tensor) -> Tensor:
        y.unsqueeze_(0).transpose_(0, 1)
        return y


class MadeLeaf(Steps):
    def between(self, x: Tensor, y: Tensor) -> Tensor:
        self.cut = y.detach().requires_grad_()  # a leaf in the middle of the network
        return self.cut


class Scaler(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2)


class InputWritten(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.scale = Scaler()
        self.last = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        self.scale(hidden)
        return self.last(hidden)


class LeafInputWritten(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Scaler()
        self.last = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.scale(x))


class Chunk(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.chunk(2, dim=-1)


class Unbind(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.unbind(1)


class Sliced(nn.Module):
    """One half of the input, as a view that may be written (unlike the views of chunk)."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :2]


class UsesParts(nn.Module):
    def __init__(self, split: nn.Module) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.split = split
        self.act = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        parts = self.split(self.first(x))
        return parts[0] * self.act(parts[1])


class WritesSibling(nn.Module):
    """Two views of one base, handed out by two modules; one of them is written."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.left = Sliced()
        self.whole = nn.Flatten(0)

    def forward(self, x: Tensor) -> Tensor:
        base = self.first(x) * 1
        left = self.left(base)
        whole = self.whole(base)
        left.mul_(3)
        return whole * 2


class IntoBuffer(nn.Module):
    """Writes its result into memory it keeps: every output is the same tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("out", torch.zeros(3, 4))
        self.out: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return torch.add(x, 1, out=self.out)


class CallsTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = IntoBuffer()

    def forward(self, x: Tensor) -> Tensor:
        first = self.into(x)
        kept = first.clone()
        second = self.into(x * 2)
        assert first is second
        return second - kept


class PointerWatcher(Steps):
    """Notes whether an in-place layer kept its output where its input was."""

    def between(self, x: Tensor, y: Tensor) -> Tensor:
        z = torch.relu_(y)
        self.same_tensor = z is y
        self.same_storage = z.untyped_storage()._cdata == y.untyped_storage()._cdata
        return z


EXHIBITS = (
    Exhibit(
        "conv_inplace_relu",
        "The output of a convolution is overwritten by the in-place ReLU after it.",
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True), nn.Conv2d(3, 1, 3)),
        _image,
    ),
    Exhibit(
        "linear_view_inplace_relu",
        "Linear on a 3-D input returns a view, and a tensor hook on a view is lost when the view "
        "is then written in place.",
        lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)),
        _sequence,
    ),
    Exhibit(
        "inplace_dropout_on_view",
        "An in-place dropout writes a view and draws random numbers.",
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5, inplace=True), nn.Linear(4, 2)),
        _sequence,
    ),
    Exhibit(
        "residual_iadd_on_view", "`y += x` on an output that is a view.", ResidualOnView, _sequence
    ),
    Exhibit("slice_written", "Parts of an output are assigned and scaled by index.", SliceWritten),
    Exhibit(
        "narrow_written",
        "An output is changed through a narrower view of it, then as a whole.",
        NarrowWritten,
        _sequence,
    ),
    Exhibit("data_written", "`y.data` is written, which no version counter sees.", DataWritten),
    Exhibit("data_replaced", "`y.data = …` gives an output other memory.", DataReplaced),
    Exhibit(
        "shape_changed_in_place", "An output's shape and strides change in place.", ShapeChanged
    ),
    Exhibit("leaf_in_the_middle", "An output is detached and made a leaf of its own.", MadeLeaf),
    Exhibit("input_written", "A module writes into its (non-leaf) input.", InputWritten),
    Exhibit(
        "leaf_input_written",
        "A module writes into the caller's own tensor, a leaf without gradient.",
        LeafInputWritten,
        lambda model, given: model(given.floats(3, 4, grad=False)),
    ),
    Exhibit(
        "chunk_views",
        "A module returns `chunk` views, which may not be written.",
        lambda: UsesParts(Chunk()),
    ),
    Exhibit("unbind_views", "A module returns `unbind` views.", lambda: UsesParts(Unbind())),
    Exhibit(
        "flatten_then_inplace",
        "Flatten passes its input on as a view, and the view is written in place.",
        lambda: nn.Sequential(
            nn.Conv2d(2, 2, 3), nn.Flatten(), nn.ReLU(inplace=True), nn.Linear(18, 2)
        ),
        _image,
    ),
    Exhibit(
        "sibling_view_written",
        "Two modules hand out views of one base; writing one changes the other.",
        WritesSibling,
    ),
    Exhibit(
        "output_buffer_reused",
        "A module returns the same memory at every call, with other numbers in it.",
        CallsTwice,
        lambda model, given: model(given.floats(3, 4, grad=False)),
        differentiable=False,
    ),
    Exhibit(
        "inplace_identity",
        "A forward checks that an in-place operation returned the same tensor and storage.",
        PointerWatcher,
    ),
)
