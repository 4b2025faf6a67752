"""Which functions are operations, what they are called, and what they write to."""

from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode, get_overridable_functions

from nethook.hooks.ops import names
from nethook.hooks.ops.names import known_names, op_name, written_arguments


class Calls(TorchFunctionMode):
    """Every call of torch, as torch reports it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def names_in(program: Callable[[Tensor], object]) -> list[str]:
    x = torch.ones(2, 4)
    with Calls() as mode:
        program(x)
    return [name for name in (op_name(func) for func, _, _ in mode.calls) if name is not None]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda x: x + x, ["add"]),
        (lambda x: 1 + x, ["add"]),
        (lambda x: operator.iadd(x, 1), ["add"]),
        (lambda x: torch.add(x, x), ["add"]),
        (lambda x: x.add_(1), ["add"]),
        (lambda x: 1 - x, ["rsub"]),
        (lambda x: x[0], ["getitem"]),
        (lambda x: operator.setitem(x, 0, 1.0), ["setitem"]),
        (lambda x: x @ x.T, ["matmul"]),
        (lambda x: x**2, ["pow"]),
        (lambda x: F.relu(x), ["relu"]),
        (lambda x: torch.relu_(x), ["relu"]),
        (lambda x: F.dropout(x, 0.5), ["dropout"]),
        (lambda x: F.max_pool1d(x, 2), ["max_pool1d"]),
        (lambda x: F.softmax(x, -1), ["softmax"]),
        (lambda x: x.softmax(-1), ["softmax"]),
        (lambda x: torch.ops.aten.relu.default(x), ["relu"]),
        (lambda x: torch.zeros(2), ["zeros"]),
        (lambda x: x.type(torch.float64), ["type"]),
        (lambda x: list(x), ["unbind"]),
        (lambda x: F.layer_norm(x, (4,)), ["layer_norm"]),
        (lambda x: F.scaled_dot_product_attention(x, x, x), ["scaled_dot_product_attention"]),
        (lambda x: (x.shape, x.dtype, x.device, x.requires_grad, x.T, x.data, x.grad_fn), []),
        (lambda x: (x.size(), x.dim(), x.numel(), len(x), x.stride(), x.is_contiguous()), []),
        (lambda x: (x.is_floating_point(), torch.is_complex(x), torch.numel(x)), []),
        (lambda x: (bool(x.sum() > 0), x.tolist(), x.numpy(), repr(x)), ["sum", "gt"]),
        (lambda x: (float(x[0, 0]), int(x[0, 0]), x[0, 0].item()), ["getitem"] * 3),
        (lambda x: torch.no_grad().__enter__() or torch.set_grad_enabled(True), []),
        (lambda x: torch.device("cpu"), []),
        (lambda x: (torch.equal(x, x), torch.allclose(x, x), x.data_ptr()), []),
    ],
)  # fmt: skip
def test_names(program: Callable[[Tensor], object], expected: list[str]) -> None:
    assert names_in(program) == expected


def ranged(x: Tensor) -> int:
    return range(3)[ONE]


def profiled(x: Tensor) -> None:
    with torch.profiler.record_function("here"):
        pass


def pickled(x: Tensor) -> None:
    x.attribute = 1  # type: ignore[attr-defined]  # only then does torch report it
    x.__reduce_ex__(2)


def asked(x: Tensor) -> None:
    x.requires_grad_()
    x.register_hook(print)
    x.register_post_accumulate_grad_hook(print)


ONE = torch.ones((), dtype=torch.int64)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.__array__(),
        lambda x: complex(ONE),
        ranged,
        lambda x: f"{ONE:d}",
        lambda x: delattr(x, "grad"),
        lambda x: setattr(x, "grad", None),
        dir,
        lambda x: x.__dlpack__(),
        lambda x: x.__dlpack_device__(),
        pickled,
        lambda x: x.__setstate__((x.untyped_storage(), 0, x.size(), x.stride())),
        lambda x: x._clear_non_serializable_cached_data(),
        lambda x: x._is_view(),
        profiled,
        lambda x: torch._sym_sqrt(2.0),
        lambda x: torch.can_cast(torch.float, torch.int),
        lambda x: torch.promote_types(torch.float, torch.int),
        lambda x: torch.result_type(x, 1),
        lambda x: getattr(x, "const_data_ptr", x.data_ptr)(),  # since torch 2.13
        lambda x: x.dim_order(),
        lambda x: (x.is_shared(), x.share_memory_(), x.is_shared()),
        lambda x: (x.ndimension(), x.nelement()),
        asked,
        lambda x: (x.storage_type(), x.untyped_storage()),
        lambda x: torch.sym_float(1),
        lambda x: torch.sym_int(1.5),
        lambda x: torch.sym_ite(True, 1, 2),
        lambda x: torch.sym_max(1, 2),
        lambda x: torch.sym_min(1, 2),
        lambda x: torch.sym_not(True),
        lambda x: torch.sym_sum([1, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_what_only_reads_or_sets_what_is_known_of_a_tensor_is_no_operation(
    program: Callable[[Tensor], object],
) -> None:
    x = torch.ones(2, 4)
    with Calls() as mode:
        program(x)
    assert mode.calls
    assert names_in(program) == []
    assert torch.equal(x, torch.ones(2, 4))


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_storage_is_no_operation() -> None:
    assert names_in(lambda x: x.storage()) == []


class Doubled:
    """A callable without a name."""

    def __call__(self, x: Tensor) -> Tensor:
        return x * 2


def test_a_callable_without_a_name_is_called_by_its_class() -> None:
    assert op_name(Doubled()) == "Doubled"
    assert written_arguments(Doubled(), (torch.ones(2),), {}) == []


def test_underscores_alone_are_a_name() -> None:
    def nothing() -> None: ...

    nothing.__name__ = "__"
    assert op_name(nothing) == "__"


def test_underscores_alone_are_left_out_of_a_name() -> None:
    def function() -> None: ...

    for name in ("_X", "__X__", "X_", "a_X", "x_"):
        function.__name__ = name
        known_names.pop(function, None)
        assert op_name(function) == {"a_X": "a_X", "x_": "x"}.get(name, "X")
    known_names.pop(function)


def test_names_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def first() -> None: ...

    def second() -> None: ...

    monkeypatch.setattr(names, "MOST_NAMES", len(known_names) + 1)
    assert (op_name(first), op_name(second)) == ("first", "second")
    assert first in known_names
    assert second not in known_names
    del known_names[first]


@pytest.mark.parametrize(
    "function",
    [
        each
        for each in vars(F).values()
        if isinstance(each, FunctionType) and "inplace" in inspect.signature(each).parameters
    ],
    ids=lambda each: each.__name__,
)
def test_torch_hands_on_by_name_what_is_asked_in_place(function: FunctionType) -> None:
    dims = {"dropout1d": 3, "dropout3d": 5}.get(function.__name__, 4)
    x = torch.ones([2] * dims)
    parameters = list(inspect.signature(function).parameters.values())
    at = [each.name for each in parameters].index("inplace")
    given = [
        0.5 if each.default is inspect.Parameter.empty else each.default for each in parameters
    ]
    with Calls() as mode:
        function(x, *given[1:at], True)
    func, args, kwargs = mode.calls[0]
    assert [each is x for each in written_arguments(func, args, kwargs)] == [True]


def test_what_returns_no_tensor_by_its_schema_is_no_operation() -> None:
    # torch's own schemas are the judge. `x[i]` and `backward` share a name with other schemas.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = [each for some in get_overridable_functions().values() for each in some]
    checked = 0
    for function in functions:
        name = getattr(function, "__name__", "")
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        if not schemas or name == "__getitem__":
            continue
        returns = [str(each.type) for schema in schemas for each in schema.returns]
        computes = any("Tensor" in each for each in returns)
        if not computes:
            assert op_name(function) is None, name
        elif not name.startswith("_") and name not in NO_OPS_THAT_RETURN_ONE:
            assert op_name(function) is not None, name
        checked += 1
    assert checked > 500


# They return the tensor they were given, or one that only says what it is like.
NO_OPS_THAT_RETURN_ONE = {"requires_grad_", "stride", "size", "is_pinned", "storage_offset"}


class Unhashable:
    """A callable that no dict takes as a key."""

    __name__ = "odd_"
    __hash__ = None  # type: ignore[assignment]

    def __call__(self) -> None:
        """Nothing."""


def test_a_function_that_cannot_be_hashed_has_a_name() -> None:
    assert op_name(Unhashable()) == "odd"


@pytest.mark.parametrize(
    ("program", "written"),
    [
        (lambda x: x.add(1), 0),
        (lambda x: x.add_(1), 1),
        (lambda x: operator.iadd(x, 1), 1),
        (lambda x: operator.setitem(x, 0, 1.0), 1),
        (lambda x: torch.add(x, 1, out=x), 1),
        (lambda x: torch.max(x, 0, out=(torch.zeros(4), torch.zeros(4, dtype=torch.long))), 2),
        (lambda x: F.relu(x, inplace=True), 1),
        (lambda x: F.relu(x, True), 1),
        (lambda x: F.relu(x, False), 0),
        (lambda x: F.relu(x), 0),
        (lambda x: F.relu(input=x, inplace=True), 1),
        (lambda x: F.dropout(x, 0.5, True, True), 1),
        (lambda x: F.dropout(x, 0.5, True), 0),
        (lambda x: F.relu_(x), 1),
        (lambda x: torch._foreach_add_([x, x], 1.0), 2),
        (lambda x: x + 1, 0),
        (lambda x: 1 - x, 0),
        (lambda x: F.gelu(x), 0),
        (lambda x: torch.relu_(input=x), 1),
    ],
)
def test_what_is_written(program: Callable[[Tensor], object], written: int) -> None:
    x = torch.ones(2, 4)
    with Calls() as mode:
        program(x)
    func, args, kwargs = mode.calls[-1]
    found = written_arguments(func, args, kwargs)
    assert len(found) == written
    if written == 1:
        assert found[0] is x
