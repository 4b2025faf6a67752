"""Tensors that are not float32, dense, contiguous and plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]

CSR = Quiet(UserWarning, "Sparse CSR tensor support is in beta", "the layout is the exhibit")


class Then(nn.Module):
    """A layer, then a child that turns its output into something unusual, then use of that."""

    def __init__(self, change: Any, use: Any = lambda y: y, *, dtype: torch.dtype = torch.float32):
        super().__init__()
        self.fc = nn.Linear(4, 4, dtype=dtype)
        self.change = Change(change)
        self._use = use

    def forward(self, x: Tensor) -> Any:
        return self._use(self.change(self.fc(x)))


class Change(nn.Module):
    def __init__(self, change: Any) -> None:
        super().__init__()
        self._change = change

    def forward(self, x: Tensor) -> Any:
        return self._change(x)


def then(name: str, mechanism: str, change: Any, use: Any = lambda y: y, **options: Any) -> Exhibit:
    return Exhibit(name, mechanism, lambda: Then(change, use), **options)


def typed(dtype: torch.dtype, mechanism: str) -> Exhibit:
    return Exhibit(
        str(dtype).removeprefix("torch."),
        mechanism,
        lambda: nn.Sequential(
            nn.Linear(4, 4, dtype=dtype), nn.Tanh(), nn.Linear(4, 2, dtype=dtype)
        ),
        lambda model, given: model(given.floats(3, 4, dtype=dtype)),
    )


class Marked(Tensor):
    """A tensor subclass that survives operations and carries an attribute."""

    note: str

    @staticmethod
    def of(tensor: Tensor, note: str) -> Marked:
        made = tensor.as_subclass(Marked)
        made.note = note
        return made


class Logged(Tensor):
    """A tensor subclass that writes down every function of torch that touches it."""

    log: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Logged.log.append(getattr(func, "__name__", repr(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


class LogsTouches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.Tanh()

    def forward(self, x: Tensor) -> Tensor:
        Logged.log = self.log = []
        return self.act(self.fc(x).as_subclass(Logged)).as_subclass(Tensor)


class NumpyAlias(nn.Module):
    """Its buffer's memory is also seen by numpy, and both write to it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(4))
        self.table: Tensor
        self.alias = self.table.numpy()
        self.source = Change(lambda t: t)
        self.seen: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        table = self.source(self.table)
        table.add_(1)
        self.seen.append(float(self.alias.sum()))  # numpy must see what torch wrote
        self.alias[0] = 7.0
        return x * table.clone()  # and torch what numpy wrote


class StorageAlias(nn.Module):
    """The memory of a child's output is handed to numpy before the child returns."""

    def __init__(
        self,
        share: Callable[[Tensor], Any],
        make: Callable[[Tensor], Tensor] = lambda x: x.detach() * 3,
        returned: Callable[[Tensor], Tensor] = lambda made: made,
    ) -> None:
        super().__init__()
        self.source = Change(self._make)
        self._share, self._compute, self._returned = share, make, returned
        self.scale = Change(lambda t: t.mul_(2))
        self.alias = np.zeros(0)

    def _make(self, x: Tensor) -> Tensor:
        made = self._compute(x)
        self.alias = self._share(made)
        return self._returned(made)

    def forward(self, x: Tensor) -> Tensor:
        y = self.source(x)
        with torch.no_grad():
            y = self.scale(y)
        assert y.numel() == self.alias.size
        return x * torch.from_numpy(self.alias.copy())


class DLPackLater(nn.Module):
    """The parent hands a child's output out, and both sides write to it."""

    def __init__(self) -> None:
        super().__init__()
        self.source = Change(lambda x: x.detach() * 3)
        self.scale = Change(lambda t: t.mul_(2))

    def forward(self, x: Tensor) -> Tensor:
        made = self.source(x)
        alias = torch.from_dlpack(made)
        alias += 1
        self.scale(made)
        return x * alias + made


def _numpy_input(model: nn.Module, given: Given) -> object:
    array = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    out = model(given.keep(torch.from_numpy(array)))
    array += 1  # what was passed through is seen to change
    return out


class Ints(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.index = Change(lambda t: (t.long() % 6).abs())
        self.embed = nn.Embedding(6, 4)
        self.argmax = Change(lambda t: t.argmax(-1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        vectors = self.embed(self.index(x))
        return vectors, self.argmax(vectors)


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4, dtype=torch.complex64)
        self.spectrum = Change(torch.fft.fft)
        self.conj = Change(torch.conj)  # a lazy bit, not a computation
        self.imag = Change(lambda t: t.conj().imag)  # a lazy minus sign

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        spectrum = self.fc(self.spectrum(x))
        return self.conj(spectrum), self.imag(spectrum)


class SparseInside(nn.Module):
    """A child makes a sparse matrix of its weights, another multiplies with it."""

    def __init__(self, convert: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1.0, 0, 2, 0], [0, 0, 3, 0]]))
        self.convert = Change(convert)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sparse.mm(self.convert(self.weight), x.mT)


class NestedInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pack = Change(lambda t: torch.nested.as_nested_tensor([t[0, :2], t[1, :3]]))
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.nested.to_padded_tensor(self.fc(self.pack(x)), 0.0)


class SharedMemory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("steps", torch.zeros(1))
        self.steps: Tensor
        self.source = Change(lambda t: t)
        self.share_memory()

    def forward(self, x: Tensor) -> Tensor:
        self.source(self.steps).add_(1)
        return self.fc(x) * self.steps.item()


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = Change(lambda t: torch.quantize_per_tensor(t.detach(), 0.1, 0, torch.qint8))
        self.up = Change(lambda t: t.dequantize())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.up(self.down(x))


class MetaDevice(nn.Module):
    """Part of it has shapes but no memory."""

    def __init__(self) -> None:
        super().__init__()
        self.ghost = nn.Linear(4, 8, device="meta")
        self.real = nn.Linear(4, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.real(x).reshape(self.ghost(x.to("meta")).shape)


EXHIBITS = (
    typed(torch.float16, "Half precision."),
    typed(torch.bfloat16, "bfloat16, which numpy does not know."),
    typed(torch.float64, "Double precision."),
    Exhibit("complex_numbers", "Complex values with lazy conjugate and negative bits.", Complex),
    Exhibit("integers", "Integer outputs beside differentiable ones.", Ints),
    then(
        "booleans",
        "A child returns booleans.",
        lambda y: y > 0,
        lambda m: m.float(),
        differentiable=False,
    ),
    then(
        "small_types",
        "Eight-bit floats and sixteen-bit unsigned integers, with which torch can do little.",
        lambda y: (y.to(torch.float8_e4m3fn), y.abs().to(torch.uint16), y),
    ),
    Exhibit(
        "zero_size_batch",
        "A batch of no samples.",
        lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)),
        lambda model, given: model(given.floats(0, 4)),
    ),
    then("scalar_output", "A tensor without dimensions.", lambda y: y.sum()),
    then(
        "nan_and_infinity",
        "NaN, infinities and negative zero.",
        lambda y: torch.log(y) / y.sign() * 0.0,
    ),
    then(
        "expanded",
        "A child returns an expanded view: stride zero.",
        lambda y: y[:, :1].expand(-1, 5),
    ),
    then("overlapping", "A child returns overlapping windows.", lambda y: y.unfold(1, 2, 1)),
    then(
        "transposed", "A child returns a transposed slice with an offset.", lambda y: y.mT[1:, ::2]
    ),
    Exhibit(
        "channels_last",
        "Convolutions in channels-last memory format.",
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True), nn.Conv2d(3, 2, 1)).to(
            memory_format=torch.channels_last
        ),
        lambda model, given: model(
            given.floats(2, 2, 5, 5).contiguous(memory_format=torch.channels_last)
        ),
    ),
    Exhibit(
        "sparse_gradients",
        "EmbeddingBag and Embedding with sparse gradients.",
        lambda: nn.ModuleDict(
            {
                "bag": nn.EmbeddingBag(6, 4, sparse=True, mode="sum"),
                "word": nn.Embedding(6, 4, sparse=True),
            }
        ),
        lambda model, given: [m(given.ints(6, 2, 3)) for m in model.children()],
    ),
    Exhibit(
        "sparse_coo",
        "A child returns a sparse tensor.",
        lambda: SparseInside(lambda w: w.to_sparse()),
    ),
    Exhibit(
        "sparse_csr",
        "A child returns a sparse tensor in compressed rows.",
        lambda: Then(lambda y: y.detach().relu().to_sparse_csr(), lambda s: s.to_dense()),
        differentiable=False,
        quiet=[CSR],
    ),
    Exhibit(
        "nested_tensor",
        "A child returns a nested tensor, with gradient.",
        NestedInside,
        lambda model, given: model(given.floats(2, 3, 4)),
        quiet=[
            Quiet(
                UserWarning,
                "The PyTorch API of nested tensors is in prototype stage",
                "the layout is the exhibit",
            )
        ],
    ),
    Exhibit(
        "quantised",
        "A child returns a quantised tensor.",
        Quantised,
        quiet=[
            Quiet(Warning, ".*quantiz.*|.*qint.*", "torch is about to move quantised tensors out")
        ],
    ),
    Exhibit("meta_device", "A child's tensors have shapes but no memory.", MetaDevice),
    then(
        "subclass_output",
        "A tensor subclass that carries an attribute.",
        lambda y: Marked.of(y, "mine"),
    ),
    Exhibit(
        "subclass_that_watches",
        "A tensor subclass that logs each function that touches it.",
        LogsTouches,
        no_oracle="what a hand-written hook does is logged as well",
        logs_operations=True,
    ),
    Exhibit(
        "numpy_passed_through",
        "The input's memory belongs to numpy, which writes it after the call.",
        lambda: nn.Sequential(nn.Identity(), nn.Identity()),
        _numpy_input,
        differentiable=False,
    ),
    Exhibit("numpy_alias_of_buffer", "A buffer's memory is shared with a numpy array.", NumpyAlias),
    Exhibit(
        "numpy_alias_of_output",
        "An output's memory was handed to numpy, then written.",
        lambda: StorageAlias(lambda tensor: tensor.numpy()),
    ),
    Exhibit(
        "dlpack_alias_of_output",
        "The same by DLPack, of which the tensor itself knows nothing afterwards.",
        lambda: StorageAlias(np.from_dlpack),
    ),
    Exhibit(
        "dlpack_alias_of_rectified",
        "DLPack holds a detached alias of a result that backward saves, too.",
        lambda: StorageAlias(lambda made: np.from_dlpack(made.detach()), torch.relu),
    ),
    Exhibit(
        "dlpack_alias_of_base",
        "DLPack holds what the child's output is a view of.",
        lambda: StorageAlias(np.from_dlpack, lambda x: x.detach() * 3, lambda made: made.view(-1)),
    ),
    Exhibit(
        "dlpack_after_return",
        "An output goes out by DLPack after the child has returned, and is written then.",
        DLPackLater,
    ),
    Exhibit("shared_memory", "Parameters and buffers in shared memory.", SharedMemory),
)
