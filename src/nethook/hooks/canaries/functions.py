"""Canaries of functions that nethook wraps, of compilers, wrappers, ranks, and others."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from nethook import torch_private as private
from nethook.hooks.canaries.registry import canary
from nethook.private_names import exists, look_up


@contextmanager
def _wrapped(path: str, seen: list[tuple[Any, ...]]) -> Iterator[None]:
    """The function at `path` notes what it is called with."""
    holder, _, attribute = path.rpartition(".")
    module, original = look_up(holder), look_up(path)

    def call(*args: Any, **kwargs: Any) -> Any:
        seen.append((*args, kwargs))
        return original(*args, **kwargs)

    setattr(module, attribute, call)
    try:
        yield
    finally:
        setattr(module, attribute, original)


@canary(*(f"torch.utils.checkpoint.{name}" for name in private.CHECKPOINT_GENERATORS))
def _checkpoint() -> bool:
    from torch.utils.checkpoint import checkpoint

    seen: list[tuple[Any, ...]] = []
    with _wrapped(f"torch.utils.checkpoint.{private.CHECKPOINT_GENERATOR}", seen):
        checkpoint(torch.relu, torch.ones(2, requires_grad=True), use_reentrant=False)
    return len(seen) == 1 and seen[0][0] is torch.relu


@canary("torch._C._nn.cross_entropy_loss")
def _native_losses() -> bool:
    seen: list[tuple[Any, ...]] = []
    with _wrapped("torch._C._nn.cross_entropy_loss", seen):
        nn.functional.cross_entropy(torch.ones(1, 2), torch.tensor([1]))
    return len(seen) == 1


def _parameter() -> nn.Parameter:
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), 9.0)
    return weight


@canary(f"torch.nn.utils.clip_grad.{private.CLIP_NORM}")
def _clip_norm() -> bool:
    seen: list[tuple[Any, ...]] = []
    with _wrapped(f"torch.nn.utils.clip_grad.{private.CLIP_NORM}", seen):
        nn.utils.clip_grad_norm_([_parameter()], 1.5)
    return len(seen) == 1 and seen[0][1] == 1.5


@canary(f"torch.nn.utils.clip_grad.{private.CLIP_GROUPS}")
def _clip_value() -> bool:
    seen: list[tuple[Any, ...]] = []
    with _wrapped(f"torch.nn.utils.clip_grad.{private.CLIP_GROUPS}", seen):
        nn.utils.clip_grad_value_([_parameter()], 1.5)
    return len(seen) == 1


@canary(private.EXPORTING)
def _exporting() -> bool:
    """Whether compiled code knows that it is no export, and an export that it is one."""
    answers: list[bool] = []

    class Asks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            answers.append(private.is_exporting())
            return x + 1

    torch.export.export(Asks(), (torch.ones(2),), strict=False)

    def ask(x: Tensor) -> Tensor:
        return x + 1 if private.is_exporting() else x

    compiled = torch.compile(ask, backend="eager", fullgraph=True)
    return set(answers) == {True} and compiled(torch.zeros(1)).item() == 0.0


@canary(f"{private.COMPILER}.OptimizedModule", f"{private.COMPILER}.OptimizedModule()")
def _compiled() -> bool:
    module = nn.Linear(2, 2)
    compiled: Any = torch.compile(module)
    return private.is_compiled(compiled) and list(private.children_of(compiled)) == ["_orig_mod"]


@canary(
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


@canary(private.WARNED)
def _skipped_graphs() -> bool:
    """Torch warns of a whole graph that ran eagerly, unless it was told to expect that."""
    compiled: Any = torch.compile(nn.Identity(), backend="eager", fullgraph=True)
    warned = look_up(private.WARNED)
    before = set(warned)
    warned.clear()
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            torch.compiler.set_stance("force_eager"),
        ):
            warnings.simplefilter("always")
            expected = private.expect_skipped_graphs()
            compiled(torch.ones(2))
            silent = not caught
            private.warn_of_skipped_graphs()
            compiled(torch.ones(2))
        return expected and silent and len(caught) == 1
    finally:
        warned.clear()
        warned.update(before)


def _class_with(path: str, attribute: str) -> bool:
    """Whether there is a class whose instances have an attribute, by what it says of itself."""
    import inspect

    return exists(path) and attribute in inspect.getsource(look_up(path))


for _place, _class, _attribute in private.WRAPPERS[4:]:
    canary(f"{_place}.{_class}()")(
        lambda path=f"{_place}.{_class}", attribute=_attribute: (  # type: ignore[misc]
            not torch.distributed.is_available() or _class_with(path, attribute)
        )
    )


@canary("torch.nn.parallel.DistributedDataParallel._active_ddp_module")
def _ddp() -> bool:
    return private.ddp_at_work(nn.parallel.DistributedDataParallel) is None


@canary("torch.distributed.fsdp.FSDPModule._get_fsdp_state")
def _fsdp() -> bool:
    return not torch.distributed.is_available() or exists(
        "torch.distributed.fsdp.FSDPModule._get_fsdp_state"
    )


@canary("torch.distributed._functional_collectives.AsyncCollectiveTensor")
def _on_its_way() -> bool:
    path = "torch.distributed._functional_collectives.AsyncCollectiveTensor"
    return not torch.distributed.is_available() or hasattr(look_up(path), "trigger_wait")


@canary(
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


@canary("torch.utils._pytree")
def _pytree() -> bool:
    node = private.pytree.SUPPORTED_NODES[dict]
    parts, how = node.flatten_fn({"a": 1, "b": 2})
    return list(parts) == [1, 2] and node.unflatten_fn(parts, how) == {"a": 1, "b": 2}


@canary("torch.nn.attention.bias.CausalBias._materialize")
def _mask_of_bias() -> bool:
    from torch.nn.attention.bias import causal_lower_right

    mask = private.mask_of_bias(causal_lower_right(2, 2), torch.device("cpu"))
    return mask.tolist() == [[True, False], [True, True]]


@canary("torch.utils.data.DataLoader._iterator")
def _iterator_of_loader() -> bool:
    return private.ITERATOR_OF_LOADER in vars(torch.utils.data.DataLoader(cast(Any, [1])))


@canary("torch._dynamo.convert_frame.FRAME_COUNTER")
def _compiled_frames() -> bool:
    """Compiling is counted."""

    def one_more(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    compiled: Any = torch.compile(one_more, backend="eager")
    compiled(torch.ones(2))
    return private.compiled_frames() > 0


@canary(
    "torch.utils.data.dataloader._BaseDataLoaderIter",
    "torch.utils.data.dataloader._BaseDataLoaderIter._dataset",
    "torch.utils.data.dataloader._BaseDataLoaderIter._index_sampler",
    "torch.utils.data.dataloader._BaseDataLoaderIter._auto_collation",
)
def _loaders() -> bool:
    """What iterates over a data loader is of this class, and knows its sampler."""
    samples: Any = [1, 2, 3]
    data: Any = torch.utils.data.DataLoader(samples, batch_size=2)
    iterator = iter(data)
    kind = private.loader_iterator
    sampler = private.sampler_of_loader(iterator)
    return (
        isinstance(iterator, kind)
        and "__next__" in vars(kind)
        and sampler is data.batch_sampler
        and private.dataset_of_loader(iterator) is samples
        and private.collates(iterator) is True
    )
