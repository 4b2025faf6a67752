"""One check per private name of torch: does it still answer the question that nethook asks?

    python -m nethook --version        # runs them all

A canary asks the question in a situation where the answer is known. So it fails where a name is
missing, and also where it means something else than it did.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nethook import torch_private as private
from nethook.private_names import NAMES, exists, look_up

Canary = Callable[[], bool]

_CANARIES: Final[dict[str, Canary]] = {}


def failing() -> dict[str, str]:
    """The private names that this torch lacks or uses otherwise -> what is lost by that."""
    found = {}
    for path, private_name in NAMES.items():
        if not sings(path):
            found[path] = private_name.lost
    return found


def sings(path: str) -> bool:
    """Whether the canary of one name finds what it expects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return bool(_CANARIES[path]())
        except Exception:  # whatever another torch does
            return False


def _canary(*paths: str) -> Callable[[Canary], Canary]:
    def keep(check: Canary) -> Canary:
        for path in paths:
            _CANARIES[path] = check
        return check

    return keep


# -- What this thread is doing ---------------------------------------------------------------------


class _InBackward(torch.autograd.Function):
    """The identity; its backward asks a question and keeps the answer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, question: Callable[[], Any], answers: list[Any]) -> Tensor:
        ctx.question, ctx.answers = question, answers
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.answers.append(ctx.question())
        return grads[0], None, None


def _asked_in_backward(question: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    with torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        _InBackward.apply(x, question, answers).sum().backward()
    return answers[0]


@_canary("torch._C._current_graph_task_id")
def _backward_id() -> bool:
    one, two = _asked_in_backward(private.backward_id), _asked_in_backward(private.backward_id)
    return private.backward_id() == -1 and one != -1 and one != two


@_canary("torch._C._are_functorch_transforms_active")
def _in_transform() -> bool:
    inside = []
    torch.func.vmap(lambda x: (inside.append(private.in_transform()), x)[1])(torch.ones(2))
    return inside == [True] and not private.in_transform()


class _Mode(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


@_canary("torch._C._len_torch_function_stack")
def _function_modes() -> bool:
    before = private.function_modes()
    with _Mode(), _Mode():
        return private.function_modes() == before + 2


@_canary(
    "torch._C._push_on_torch_function_stack",
    "torch._C._pop_torch_function_stack",
    "torch._C._get_function_stack_at",
)
def _function_stack() -> bool:
    mode, before = _Mode(), private.function_modes()
    private.push_function_mode(mode)
    at_top = private.function_mode_at(before) is mode
    return private.pop_function_mode() is mode and at_top and private.function_modes() == before


@contextmanager
def _dispatch_mode() -> Iterator[None]:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        yield


@_canary(
    "torch._C._len_torch_dispatch_stack", "torch.utils._python_dispatch._disable_current_modes"
)
def _dispatch_modes() -> bool:
    before = private.dispatch_modes()
    with _dispatch_mode():
        inside = private.dispatch_modes()
        with private.without_dispatch_modes():
            off = private.dispatch_modes()
    return inside == before + 1 and off == 0 and private.dispatch_modes() == before


@_canary("torch._C._DisableFuncTorch")
def _without_transforms() -> bool:
    def inside(x: Tensor) -> Tensor:
        with private.without_transforms():
            fresh.append(torch.ones(2))
        return x

    fresh: list[Tensor] = []
    torch.func.vmap(inside, randomness="same")(torch.ones(2))
    return fresh[0].sum().item() == 2


@_canary("torch._C.DisableTorchFunction")
def _without_function_overrides() -> bool:
    seen: list[str] = []

    class Loud(Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    loud = torch.ones(2).as_subclass(Loud)
    seen.clear()
    with private.without_function_overrides():
        loud.sum()
    return seen == []


@_canary("torch._C._set_grad_enabled")
def _set_grad() -> bool:
    was_on = torch.is_grad_enabled()
    try:
        private.set_grad(False)
        off = torch.is_grad_enabled()
        private.set_grad(True)
        return torch.is_grad_enabled() and not off
    finally:
        torch.set_grad_enabled(was_on)


@_canary("torch._C._is_any_autocast_enabled")
def _is_autocast() -> bool:
    with torch.autocast("cpu", enabled=False):
        off = private.is_autocast()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return private.is_autocast() and not off


@_canary("torch._C._is_tracing")
def _is_tracing() -> bool:
    inside: list[bool] = []
    trace: Any = torch.jit.trace
    trace(
        lambda x: (inside.append(private.is_tracing()), x + 1)[1], torch.ones(2), check_trace=False
    )
    return inside == [True] and not private.is_tracing()


@_canary("torch.autograd.forward_ad._current_level")
def _dual_level() -> bool:
    before = private.dual_level()
    with torch.autograd.forward_ad.dual_level():
        return before == -1 and private.dual_level() == 0


@_canary("torch._C._autograd._top_saved_tensors_default_hooks")
def _saved_tensors_hooks() -> bool:
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        inside = private.saved_tensors_hooks(False)
    return inside is not None and private.saved_tensors_hooks(False) is None


@_canary("torch.autograd.Variable._execution_engine")
def _queue_callback() -> bool:
    said: list[str] = []
    _asked_in_backward(lambda: private.queue_callback(lambda: said.append("ended")))
    return said == ["ended"]


# -- Tensors ---------------------------------------------------------------------------------------


@_canary("torch.Tensor._version")
def _version() -> bool:
    x = torch.ones(2)
    before = private.version_of(x)
    x[:1].add_(1)
    return private.version_of(x) == before + 1


@_canary("torch.Tensor._base", "torch.Tensor._is_view")
def _base() -> bool:
    x = torch.ones(2)
    part = x[:1]
    return (
        private.base_of(part) is x
        and private.base_of(x) is None
        and private.is_view(part)
        and not private.is_view(x)
    )


@_canary("torch.Tensor._backward_hooks", "torch.autograd.graph.Node._register_hook_dict")
def _hooks_of_tensor() -> bool:
    with torch.enable_grad():
        y = torch.ones(2, requires_grad=True) * 2
        empty = private.hooks_of_tensor(y)
        seen: list[Tensor] = []
        private.new_table_of(y, y.grad_fn)[10**9] = seen.append
        y.sum().backward()
    return empty is None and len(seen) == 1 and 10**9 in (private.hooks_of_tensor(y) or ())


@_canary("torch.Tensor._post_accumulate_grad_hooks")
def _accumulate_hooks() -> bool:
    return private.accumulate_hooks_of(torch.ones(2, requires_grad=True)) is None


@_canary("torch.UntypedStorage._cdata")
def _storage_id() -> bool:
    x, other = torch.ones(4), torch.empty(0)

    def of(tensor: Tensor) -> int:
        return private.storage_id(tensor.untyped_storage())

    return of(x) == of(x[2:]) and len({of(x), of(other), of(torch.empty(0))}) == 3


@_canary("torch.Tensor._is_zerotensor")
def _zero_tensor() -> bool:
    return private.is_zero_tensor(torch.ones(2)) is False


@_canary("torch.Tensor._indices", "torch.Tensor._values")
def _sparse() -> bool:
    twice = torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,))
    places, values = private.sparse_indices(twice), private.sparse_values(twice)
    return places.tolist() == [[1, 1]] and values.tolist() == [2.0, 3.0]


@_canary("torch.distributed.tensor.DTensor._local_tensor")
def _local_of() -> bool:
    if not torch.distributed.is_available():
        return True
    from torch.distributed.tensor import DTensor

    # A tensor over ranks needs a process group; its class declares the attribute all the same.
    return "_local_tensor" in getattr(DTensor, "__annotations__", {}) or hasattr(
        DTensor, "_local_tensor"
    )


@_canary("torch._debug_has_internal_overlap")
def _overlaps() -> bool:
    one = torch.ones(1)
    return private.overlaps(one.expand(3)) == 1 and private.overlaps(torch.ones(2, 3).t()) == 0


@_canary("torch._foreach_norm")
def _norms() -> bool:
    found = private.norms([torch.tensor([3.0, 4.0]), torch.ones(1)], 2, dtype=torch.float64)
    return [(each.item(), each.dtype) for each in found] == [
        (5.0, torch.float64),
        (1.0, torch.float64),
    ]


@_canary("torch._lazy_clone", "torch._C._data_address")
def _lazy_clone() -> bool:
    x = torch.ones(4)
    twin = private.lazy_clone(x)
    shared = private.data_address(x) == private.data_address(twin)
    still = private.data_address(x) == private.data_address(twin)  # asking does not part them
    x.add_(1)
    return shared and still and twin.tolist() == [1.0] * 4 and x.tolist() == [2.0] * 4


@_canary("torch.Tensor._use_count", "torch._C._storage_Use_Count")
def _owners() -> bool:
    x = torch.ones(4)
    storage = x.untyped_storage()
    alone = private.owners_of(private.storage_id(storage))
    part = x[1:]
    return (
        alone == 2
        and private.owners_of(private.storage_id(storage)) == 3
        and private.uses_of(part) == 1
        and private.uses_of(x) == 2  # the part holds its base
    )


@_canary("torch._C._autograd._unsafe_set_version_counter")
def _set_versions() -> bool:
    x = torch.ones(2)
    before = private.version_of(x)
    x.add_(1)
    private.set_versions((x,), (before,))
    return private.version_of(x) == before


@_canary("torch._C._functorch.is_functorch_wrapped_tensor")
def _of_a_transform() -> bool:
    inside = []
    torch.func.vmap(lambda x: (inside.append(private.is_of_a_transform(x)), x)[1])(torch.ones(2))
    return inside == [True] and not private.is_of_a_transform(torch.ones(2))


@_canary("torch._C._dispatch_keys", "torch._C.DispatchKey")
def _dispatch_keys() -> bool:
    def number(tensor: Tensor) -> int:
        return int(private.dispatch_keys(tensor).raw_repr())

    plain = number(torch.ones(2))
    others = [torch.ones(2, device="meta"), torch.ones(2).to_sparse(), torch.ones(2) * 1j]
    others[-1] = others[-1].conj()
    meta = private.dispatch_keys(others[0]).has(private.DispatchKey.Meta)
    return (
        plain == number(torch.zeros(3, 4))
        and len({plain, *map(number, others)}) == 4
        and meta
        and not private.dispatch_keys(torch.ones(2)).has(private.DispatchKey.Python)
    )


# -- Nodes of autograd -----------------------------------------------------------------------------


@_canary("torch._C._autograd._get_sequence_nr", "torch.autograd.graph.Node._sequence_nr")
def _node_numbers() -> bool:
    with torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        begin = private.next_node_number()
        y, z = x * 2, x * 3
        end = private.next_node_number()
    return [private.node_number(each.grad_fn) for each in (y, z)] == [begin, begin + 1] and (
        end == begin + 2
    )


def _product() -> Tensor:
    with torch.enable_grad():
        return torch.full((2, 3), 2.0, requires_grad=True) * torch.full((3,), 5.0)


@_canary("torch.autograd.graph.Node._input_metadata")
def _shapes_of_node() -> bool:
    found = private.shapes_of_node(_product().grad_fn)
    return [(tuple(each.shape), each.dtype) for each in found] == [((2, 3), torch.float32)]


@_canary(
    "torch.autograd.graph.Node._saved_self",
    "torch.autograd.graph.Node._raw_saved_self",
    "torch._C._autograd.SavedTensor.unpack_hook",
)
def _saved_by() -> bool:
    node = _product().grad_fn
    saved, raw = private.saved_by(node, "other"), private.raw_saved_by(node, "other")
    unpacked: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: x, lambda x: (unpacked.append(x), x)[1]
    ):
        hooked = _product().grad_fn
    with torch.enable_grad():
        keeps = torch.ones(2, requires_grad=True).relu().grad_fn
    return (
        saved.tolist() == [5.0] * 3
        and raw is not None
        and private.saved_without_hooks(node, "other").tolist() == [5.0] * 3
        and private.saved_without_hooks(hooked, "other") is None
        and not unpacked
        and private.saved_by(node, "nothing") is None
        and len(private.everything_saved_by(node)) >= 1
        and private.saves_its_result(keeps)
        and not private.saves_its_result(node)
    )


# -- Modules ---------------------------------------------------------------------------------------


class _Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = self.two = nn.Linear(2, 2)
        self.none: nn.Module | None
        self.register_module("none", None)
        self.register_buffer("kept", torch.ones(1))
        self.register_buffer("passing", torch.ones(1), persistent=False)
        self.register_parameter("bias", None)

    def forward(self, x: Tensor) -> Tensor:
        found.append(sys._getframe(1))
        return x


found: list[FrameType] = []


@_canary(
    "torch.nn.Module._modules",
    "torch.nn.Module._parameters",
    "torch.nn.Module._buffers",
    "torch.nn.Module._non_persistent_buffers_set",
)
def _parts() -> bool:
    module = _Odd()
    return (
        list(private.children_of(module)) == ["one", "two", "none"]
        and private.parameters_of(module) == {"bias": None}
        and list(private.buffers_of(module)) == ["kept", "passing"]
        and vars(module)[private.NOT_SAVED] == {"passing"}
        and all(each in vars(module) for each in private.HOLD_PARTS)
    )


@_canary("torch.nn.Module._compiled_call_impl")
def _compiled_call() -> bool:
    module = nn.Identity()
    before = private.compiled_call_of(module)
    setattr(module, private.COMPILED_CALL, lambda _: "compiled")
    return before is None and module(torch.ones(1)) == "compiled"


@_canary("torch.nn.Module._call_impl")
def _call() -> bool:
    found.clear()
    _Odd()(torch.ones(1))
    frame = found.pop()
    return frame.f_code is private.CALL and isinstance(frame.f_locals.get("self"), _Odd)


@_canary("torch.nn.Module._is_full_backward_hook")
def _full_backward() -> bool:
    return private.FULL_BACKWARD in vars(nn.Linear(2, 2))


@_canary("torch.nn.Module._replicate_for_data_parallel")
def _replica() -> bool:
    module: Any = nn.Linear(2, 2)
    make = getattr(module, "_replicate_for_data_parallel")  # noqa: B009
    return bool(vars(make()).get(private.REPLICA)) and private.REPLICA not in vars(module)


@_canary(
    "torch.nn.modules.batchnorm._BatchNorm",
    "torch.nn.modules.instancenorm._InstanceNorm",
    "torch.nn.modules.dropout._DropoutNd",
)
def _classes() -> bool:
    return (
        all(isinstance(each(2), private.BatchNorms) for each in (nn.BatchNorm1d, nn.SyncBatchNorm))
        and isinstance(nn.InstanceNorm2d(2), private.InstanceNorms)
        and isinstance(nn.AlphaDropout(), private.Dropouts)
        and not isinstance(nn.LayerNorm(2), private.BatchNorms)
    )


# -- Hooks of modules ------------------------------------------------------------------------------


def _called(put_on: Callable[[Any, Any], None], kind: str) -> bool:
    """Whether a hook in a module's dict of one kind is called when torch calls such hooks."""
    module, seen = nn.Linear(2, 2), []

    def hook(*_: Any, **__: Any) -> None:
        seen.append(kind)

    put_on(module, hook)
    with torch.enable_grad():
        if "state_dict" in kind:
            state = module.state_dict()
            module.load_state_dict(dict(state))
        else:
            module(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return bool(seen)


def _hook_table(kind: str, attribute: str) -> Canary:
    def put_on(module: Any, hook: Any) -> None:
        if kind == "backward":
            setattr(module, private.FULL_BACKWARD, True)
        getattr(module, attribute)[10**9] = hook

    return lambda: _called(put_on, kind)


for _kind, _attribute in private.HOOKS_OF_MODULES.items():
    _canary(f"torch.nn.Module.{_attribute}")(_hook_table(_kind, _attribute))


@_canary("torch.nn.Module._forward_pre_hooks_with_kwargs")
def _pre_hooks_with_kwargs() -> bool:
    module, seen = nn.Identity(), []
    private.forward_pre_hooks_of(module)[10**9] = lambda *given: seen.append(len(given))
    private.pre_hooks_with_kwargs_of(module)[10**9] = True
    module(torch.ones(1))
    return seen == [3]


@_canary(
    "torch.nn.Module._forward_hooks_with_kwargs", "torch.nn.Module._forward_hooks_always_called"
)
def _forward_options() -> bool:
    module: Any = nn.Linear(2, 2)
    seen: list[int] = []
    private.forward_hooks_of(module)[10**9] = lambda *given: seen.append(len(given))
    private.hooks_with_kwargs_of(module)[10**9] = True
    private.hooks_always_called_of(module)[10**9] = True
    module(torch.ones(1, 2))
    with suppress(TypeError):
        module("not a tensor")
    return seen == [4, 4]


@contextmanager
def _on(table: Any, hook: Callable[..., Any]) -> Iterator[None]:
    table[10**9] = hook
    try:
        yield
    finally:
        del table[10**9]


def _global_table(kind: str) -> Canary:
    def check() -> bool:
        seen: list[str] = []
        with _on(private.GLOBAL_HOOKS[kind], lambda *_, **__: seen.append(kind)):
            if "optimizer" in kind:
                weight = nn.Parameter(torch.ones(1))
                torch.optim.SGD([weight], lr=0.1).step()
            elif "backward" in kind:
                # Torch asks a flag of its own which of two kinds of backward hooks they are.
                return private.GLOBAL_HOOKS[kind] is look_up(
                    f"torch.nn.modules.module.{private.HOOKS_ON_ALL_MODULES[kind]}"
                )
            else:
                nn.BatchNorm1d(2).eval()(torch.ones(1, 2))
                nn.Sequential(nn.Identity())
        return bool(seen)

    return check


for _kind, _attribute in private.HOOKS_ON_ALL_MODULES.items():
    _canary(f"torch.nn.modules.module.{_attribute}")(_global_table(_kind))
for _kind, _attribute in private.HOOKS_ON_ALL_OPTIMIZERS.items():
    _canary(f"torch.optim.optimizer.{_attribute}")(_global_table(_kind))


@_canary(*(f"torch.nn.modules.module.{each}" for each in private.OPTIONS_ON_ALL_MODULES))
def _global_options() -> bool:
    module: Any = nn.Linear(2, 2)
    seen: list[int] = []
    with (
        _on(private.GLOBAL_HOOKS["global_forward"], lambda *given: seen.append(len(given))),
        _on(private.global_with_kwargs, True),  # type: ignore[arg-type]
    ):
        module(torch.ones(1, 2))
    with (
        _on(private.GLOBAL_HOOKS["global_forward"], lambda *given: seen.append(len(given))),
        _on(private.global_always_called, True),  # type: ignore[arg-type]
    ):
        with suppress(TypeError):
            module("not a tensor")
    return seen == [4, 3]


@_canary("torch.nn.modules.module._has_any_global_hook")
def _any_global_hook() -> bool:
    with _on(private.GLOBAL_HOOKS["global_forward_pre"], lambda *_: None):
        return bool(private.any_global_hook())


# -- Functions that nethook wraps ------------------------------------------------------------------


@contextmanager
def _wrapped(path: str, seen: list[tuple[Any, ...]]) -> Iterator[None]:
    """The function at `path` notes what it is called with."""
    place, _, attribute = path.rpartition(".")
    module, original = sys.modules[place], look_up(path)

    def call(*args: Any, **kwargs: Any) -> Any:
        seen.append((*args, kwargs))
        return original(*args, **kwargs)

    setattr(module, attribute, call)
    try:
        yield
    finally:
        setattr(module, attribute, original)


@_canary(f"torch.utils.checkpoint.{private.CHECKPOINT_GENERATOR}")
def _checkpoint() -> bool:
    from torch.utils.checkpoint import checkpoint

    seen: list[tuple[Any, ...]] = []
    with _wrapped(f"torch.utils.checkpoint.{private.CHECKPOINT_GENERATOR}", seen):
        checkpoint(torch.relu, torch.ones(2, requires_grad=True), use_reentrant=False)
    return len(seen) == 1 and seen[0][0] is torch.relu


def _parameter() -> nn.Parameter:
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), 9.0)
    return weight


@_canary(f"torch.nn.utils.clip_grad.{private.CLIP_NORM}")
def _clip_norm() -> bool:
    seen: list[tuple[Any, ...]] = []
    with _wrapped(f"torch.nn.utils.clip_grad.{private.CLIP_NORM}", seen):
        nn.utils.clip_grad_norm_([_parameter()], 1.5)
    return len(seen) == 1 and seen[0][1] == 1.5


@_canary(f"torch.nn.utils.clip_grad.{private.CLIP_GROUPS}")
def _clip_value() -> bool:
    seen: list[tuple[Any, ...]] = []
    with _wrapped(f"torch.nn.utils.clip_grad.{private.CLIP_GROUPS}", seen):
        nn.utils.clip_grad_value_([_parameter()], 1.5)
    return len(seen) == 1


# -- Compilers, wrappers and ranks -----------------------------------------------------------------


@_canary(private.EXPORTING)
def _exporting() -> bool:
    """Whether compiled code knows that it is no export, and an export that it is one."""
    found: list[bool] = []

    class Asks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            found.append(private.is_exporting())
            return x + 1

    torch.export.export(Asks(), (torch.ones(2),), strict=False)
    compiled: Any = torch.compile(
        lambda x: x + 1 if private.is_exporting() else x, backend="eager", fullgraph=True
    )
    return set(found) == {True} and compiled(torch.zeros(1)).item() == 0.0


@_canary(f"{private.COMPILER}.OptimizedModule", f"{private.COMPILER}.OptimizedModule()")
def _compiled() -> bool:
    module = nn.Linear(2, 2)
    compiled: Any = torch.compile(module)
    return private.is_compiled(compiled) and list(private.children_of(compiled)) == ["_orig_mod"]


@_canary(
    f"{private.COMPILER_CALLBACKS}.callback_handler",
    f"{private.COMPILER_SETTINGS}.skip_nnmodule_hook_guards",
    "torch._dynamo.reset_code_caches",
    "torch._guards.CompileContext",
)
def _compiler() -> bool:
    """A module is compiled again when it gets a hook, and the compiler says when."""
    calls = private.compiler_callbacks()
    said: list[str] = []
    start: Callable[[object], None] = lambda _: said.append("compiling")  # noqa: E731
    module, seen = nn.Identity(), []
    compiled: Any = torch.compile(module, backend="eager")
    private.check_hooks(True)
    calls.register_start_callback(start)
    try:
        compiled(torch.ones(2))
        before = len(said)
        private.forward_hooks_of(module)[10**9] = lambda *_: seen.append("called")
        compiled(torch.ones(2))
        after = len(said)
        private.forget_compiled()
        compiled(torch.ones(2))
    finally:
        calls.remove_start_callback(start)
        private.check_hooks(False)
    return before == 1 and after == 2 and len(said) == 3 and len(seen) == 2


def _class_with(path: str, attribute: str) -> bool:
    """Whether there is a class whose instances have an attribute, by what it says of itself."""
    import inspect

    return exists(path) and attribute in inspect.getsource(look_up(path))


for _place, _class, _attribute in private.WRAPPERS[4:]:
    _canary(f"{_place}.{_class}()")(
        lambda place=f"{_place}.{_class}", attribute=_attribute: (  # type: ignore[misc]
            not torch.distributed.is_available() or _class_with(place, attribute)
        )
    )


@_canary("torch.nn.parallel.DistributedDataParallel._active_ddp_module")
def _ddp() -> bool:
    return private.ddp_at_work(nn.parallel.DistributedDataParallel) is None


@_canary("torch.distributed.fsdp.FSDPModule._get_fsdp_state")
def _fsdp() -> bool:
    return not torch.distributed.is_available() or exists(
        "torch.distributed.fsdp.FSDPModule._get_fsdp_state"
    )


@_canary("torch.distributed._functional_collectives.AsyncCollectiveTensor")
def _on_its_way() -> bool:
    return not torch.distributed.is_available() or exists(
        "torch.distributed._functional_collectives.AsyncCollectiveTensor.trigger_wait"
    )


# -- Others ----------------------------------------------------------------------------------------


@_canary(
    "torch._subclasses.fake_tensor.FakeTensor",
    "torch._subclasses.fake_tensor.FakeTensorMode",
    "torch._subclasses.fake_tensor.FakeCopyMode",
)
def _fake() -> bool:
    mode = private.FakeTensorMode(allow_non_fake_inputs=True)
    with private.FakeCopyMode(mode):
        twin = copy.deepcopy(nn.Linear(2, 3))
    with mode:
        shape = twin(mode.from_tensor(torch.ones(4, 2))).shape
    return isinstance(twin.weight, private.FakeTensor) and tuple(shape) == (4, 3)


@_canary("torch.utils._pytree")
def _pytree() -> bool:
    node = private.pytree.SUPPORTED_NODES[dict]
    parts, how = node.flatten_fn({"a": 1, "b": 2})
    return list(parts) == [1, 2] and node.unflatten_fn(parts, how) == {"a": 1, "b": 2}


@_canary("torch.nn.attention.bias.CausalBias._materialize")
def _mask_of_bias() -> bool:
    from torch.nn.attention.bias import causal_lower_right

    mask = private.mask_of_bias(causal_lower_right(2, 2), torch.device("cpu"))
    return mask.tolist() == [[True, False], [True, True]]


@_canary("torch.utils.data.DataLoader._iterator")
def _iterator_of_loader() -> bool:
    return private.ITERATOR_OF_LOADER in vars(torch.utils.data.DataLoader([1]))
