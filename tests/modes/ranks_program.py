"""What the two ranks do: `python -m tests.modes.ranks_program RANK FOLDER`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import nethook
from nethook import edits
from nethook.errors import NethookError
from nethook.torch_versions import release
from nethook.watching.session import Session
from tests.modes.steps import batches, network, patched
from tests.modes.two_ranks import STEPS, WORLD, run_all, scenario

WATCH: dict[str, Any] = {"budget": None, "batches": 0}


def _part(rank: int, steps: int = STEPS) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """This rank's half of every batch."""
    return [(x[4 * rank :][:4], y[4 * rank :][:4]) for x, y in batches("mlp", steps)]


def _adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def _step(model: Any, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def _weights(model: nn.Module) -> list[float]:
    return [float(each.detach().sum()) for each in model.parameters()]


def _collectives() -> int:
    return int(dist.distributed_c10d._get_default_group()._get_sequence_number_for_group())


# -- guards ---------------------------------------------------------------------------------------


def not_averaged() -> Any:
    """Gradients of outputs are those of the rank's own loss."""
    return patched("nethook.watching.facts.averaging.Averaging.over", lambda self, model: 1)


def wrappers_count() -> Any:
    """The wrapper of DDP is a module like others."""
    return patched("nethook.addresses.wrappers.wrapped_attribute", lambda cls: None)


@contextmanager
def shards_are_asked() -> Iterator[None]:
    """A tensor that is spread over ranks is measured as if it were not."""
    with (
        patched("nethook.watching.measuring.parameter_facts.local_part", lambda tensor: tensor),
        patched("nethook.watching.measuring.parameter_facts.is_shared", lambda tensor: False),
        patched("nethook.watching.measuring.parameters.local_part", lambda tensor: tensor),
        patched("nethook.stats.shards.local_part", lambda tensor: tensor),
    ):
        yield


def parameters_stay() -> Any:
    """What a parameter was when the watch began is what it is for ever."""
    return patched("nethook.watching.loop.rebinding.Resolver.changed", lambda self: False)


def taps_stay() -> Any:
    """Hooks stay where they were when a layer is made parallel."""
    return patched("nethook.watching.attach.put_last", lambda module, hook: None)


@contextmanager
def hooks_are_inert() -> Iterator[None]:
    """Every call is taken for that of another thread."""
    with (
        patched("nethook.tracing.taps.open_here", lambda: ()),
        patched("nethook.tracing.taps.elsewhere", lambda *_: True),
    ):
        yield


def edits_are_inert() -> Any:
    """The same for edits."""
    return patched("nethook.editing.changes.elsewhere", lambda *_: True)


def no_shards_known() -> Any:
    """Parameters that FSDP2 holds are taken for others."""
    return patched("nethook.hooks.layouts.fsdp.groups_of", lambda root: iter(()))


def nothing_off() -> Any:
    """The twin of these is made when they are read."""
    return patched("nethook.watching.measuring.window.QUEUE", 6)


# -- DDP ------------------------------------------------------------------------------------------


@scenario(not_averaged)
def ddp_watch(rank: int, path: Path) -> Any:
    model = DistributedDataParallel(network("mlp"))
    optimizer = _adam(model)
    with nethook.watch(model, optimizer, to=path, **WATCH):
        for x, y in _part(rank):
            _step(model, optimizer, x, y)
    return _weights(model)


@scenario(not_averaged)
def ddp_inner(rank: int, path: Path) -> Any:
    """Watched before it was wrapped; an optimizer that is found; static graph."""
    inner = network("mlp")
    with nethook.watch(inner, to=path, **WATCH):
        model = DistributedDataParallel(inner, static_graph=True)
        optimizer = _adam(model)
        for x, y in _part(rank):
            _step(model, optimizer, x, y)
    return _weights(model)


@scenario(not_averaged)
def ddp_no_sync(rank: int, path: Path) -> Any:
    """Each sample pair is a micro-batch; only the second is synchronised."""
    model = DistributedDataParallel(network("mlp"), find_unused_parameters=True)
    optimizer = _adam(model)
    with nethook.watch(model, optimizer, to=path, **WATCH):
        for x, y in _part(rank):
            optimizer.zero_grad()
            with model.no_sync():
                (F.cross_entropy(model(x[:2]), y[:2]) / 2).backward()
            (F.cross_entropy(model(x[2:]), y[2:]) / 2).backward()
            optimizer.step()
    return _weights(model)


@scenario(nothing_off)
def ddp_join(rank: int, path: Path) -> Any:
    """Rank 0 has 10 batches, rank 1 has 7."""
    model = DistributedDataParallel(network("mlp"))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    with nethook.watch(model, optimizer, to=path, **WATCH), Join([model]):
        for x, y in _part(rank, 10 - 3 * rank):
            _step(model, optimizer, x, y)
    return len(_part(rank, 10 - 3 * rank))


@scenario(nothing_off)
def ddp_one_watched(rank: int, path: Path) -> Any:
    model = DistributedDataParallel(network("mlp"))
    optimizer = _adam(model)
    watch = nethook.watch(model, optimizer, to=path, **WATCH) if rank == 0 else None
    for x, y in _part(rank):
        _step(model, optimizer, x, y)
    if watch is not None:
        watch.close()
    return _weights(model)


@scenario(nothing_off)
def no_ddp(rank: int, path: Path) -> Any:
    """Somebody forgot to wrap the model: ranks go their own ways."""
    model = network("mlp")
    optimizer = _adam(model)
    with nethook.watch(model, optimizer, to=path, **WATCH):
        for x, y in _part(rank, 5):
            _step(model, optimizer, x, y)
    return None


def _seen(model: Any, bare: nn.Module, x: torch.Tensor) -> list[bool]:
    """Whether a trace of a model has what that of the bare one has, in three passes."""
    same = []
    for step in range(STEPS):
        given = x + step
        tapes = []
        for each in (model, bare):
            with nethook.trace(each, inputs=True, grads=True) as tape:
                each(given).square().mean().backward()
            tapes.append(tape)
        ours, expected = tapes
        assert list(ours) == list(expected)
        for site in expected:
            same.append(torch.equal(ours[site].output, expected[site].output))
            same.append(torch.equal(ours[site].grad, expected[site].grad))
    return same


def _edited(model: Any, bare: nn.Module, x: torch.Tensor) -> list[bool]:
    same = []
    for step in range(STEPS):
        results = []
        for each in (model, bare):
            given = (x + step).requires_grad_()
            with nethook.edit(each, outputs={"0": edits.scale(2.0)}, grads={"2": edits.scale(3.0)}):
                out = each(given)
                out.square().mean().backward()
            results.append((out.detach(), given.grad))
        same += [torch.equal(a, b) for a, b in zip(*results, strict=True)]
    return same


@scenario(wrappers_count)
def ddp_trace(rank: int, path: Path) -> Any:
    return _seen(DistributedDataParallel(network("mlp")), network("mlp"), _part(rank)[0][0])


@scenario(wrappers_count)
def ddp_edit(rank: int, path: Path) -> Any:
    return _edited(DistributedDataParallel(network("mlp")), network("mlp"), _part(rank)[0][0])


@scenario(wrappers_count)
def ddp_features(rank: int, path: Path) -> Any:
    x = _part(rank)[0][0]
    model, bare = DistributedDataParallel(network("mlp")), network("mlp")
    found = [nethook.features(each, x, at=["0", "2"]) for each in (model, bare)]
    return [torch.equal(found[0][site], found[1][site]) for site in ("0", "2")]


# -- FSDP2 ----------------------------------------------------------------------------------------


def _sharded(model: nn.Module, **options: Any) -> nn.Module:
    for layer in model:  # type: ignore[attr-defined]
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    fully_shard(model, **options)
    if release(torch.__version__) == (2, 8):
        # Its gloo sums where FSDP2 asks for the mean (pytorch/pytorch#162338), so that the model
        # itself is trained on twice the gradients of one process. Asked for a sum, FSDP2 divides.
        for each in model.modules():
            if isinstance(each, FSDPModule):
                each.set_force_sum_reduction_for_comms(True)
    return model


def _fsdp(
    rank: int, path: Path, *, before: bool = False, clip: bool = False, **options: Any
) -> Any:
    model = network("mlp")
    watch = nethook.watch(model, to=path, **WATCH) if before else None
    _sharded(model, **options)
    optimizer = _adam(model)
    if watch is None:
        watch = nethook.watch(model, optimizer, to=path, **WATCH)
    for x, y in _part(rank):
        optimizer.zero_grad()
        F.cross_entropy(model(x).float(), y).backward()
        optimizer.step()
    watch.close()
    return None


@scenario(shards_are_asked)
def fsdp_after(rank: int, path: Path) -> Any:
    return _fsdp(rank, path)


@scenario(parameters_stay)
def fsdp_before(rank: int, path: Path) -> Any:
    return _fsdp(rank, path, before=True)


@scenario(shards_are_asked)
def fsdp_not_resharded(rank: int, path: Path) -> Any:
    return _fsdp(rank, path, reshard_after_forward=False)


@scenario(shards_are_asked)
def fsdp_mixed(rank: int, path: Path) -> Any:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return _fsdp(rank, path, mp_policy=policy)


def _count(rank: int, path: Path, make: Any, *, watched: bool) -> int:
    """Collectives of three steps, and of what nethook does besides them."""
    model = make(network("mlp"))
    optimizer = _adam(model)
    begin = _collectives()
    watch = nethook.watch(model, optimizer, to=path, budget=None) if watched else None
    for x, y in _part(rank):
        optimizer.zero_grad()
        with nethook.trace(model, inputs=True, grads=True) if watched else nullcontext():
            F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    if watch is not None:
        watch.close()
    return _collectives() - begin


def ranks_wait() -> Any:
    """A watch that waits for the others at the end of each step."""
    end_step = Session.end_step

    def together(self: Session) -> None:
        dist.barrier()
        end_step(self)

    return patched("nethook.watching.session.Session.end_step", together)


@scenario(ranks_wait)
def collectives(rank: int, path: Path) -> Any:
    counts = {}
    for make in (_sharded, DistributedDataParallel, _parallel):
        place = path.with_stem(f"{path.stem}_{make.__name__}")
        counts[make.__name__] = [
            _count(rank, place, make, watched=watched) for watched in (False, True)
        ]
    return counts


@scenario(no_shards_known)
def fsdp_trace(rank: int, path: Path) -> Any:
    model, bare = _sharded(network("mlp")), network("mlp")
    x = _part(rank)[0][0]
    with nethook.trace(model, param_grads=True) as tape:
        model(x).sum().backward()
    try:
        said = str(tape.params["0.weight"].grad)
    except NethookError as error:
        said = str(error)
    return _seen(model, bare, x), said


@scenario(no_shards_known)
def fsdp_edit(rank: int, path: Path) -> Any:
    model, bare = _sharded(network("mlp")), network("mlp")
    x = _part(rank)[0][0]
    try:
        with nethook.edit(model, param_grads={"0.weight": edits.zero()}):
            model(x).sum().backward()
        said = ""
    except NethookError as error:
        said = str(error)
    return _edited(model, bare, x), said


@scenario(hooks_are_inert)
def fsdp_features(rank: int, path: Path) -> Any:
    x = _part(rank)[0][0]
    found = [
        nethook.features(each, x, at=["0", "2"])
        for each in (_sharded(network("mlp")), network("mlp"))
    ]
    return [torch.equal(found[0][site], found[1][site]) for site in ("0", "2")]


# -- tensor parallel ------------------------------------------------------------------------------


def _parallel(model: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (WORLD,))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def _tensor_parallel(rank: int, path: Path, *, before: bool) -> Any:
    model = network("mlp")
    watch = nethook.watch(model, to=path, **WATCH) if before else None
    _parallel(model)
    optimizer = _adam(model)
    if watch is None:
        watch = nethook.watch(model, optimizer, to=path, **WATCH)
    for x, y in batches("mlp"):
        _step(model, optimizer, x, y)
    watch.close()
    return None


@scenario(shards_are_asked)
def parallel_after(rank: int, path: Path) -> Any:
    return _tensor_parallel(rank, path, before=False)


@scenario(taps_stay)
def parallel_before(rank: int, path: Path) -> Any:
    return _tensor_parallel(rank, path, before=True)


def _halves(rank: int) -> tuple[nn.Module, nn.Module, torch.Tensor]:
    return _parallel(network("mlp")), network("mlp"), batches("mlp")[0][0]


def _close(ours: Any, expected: torch.Tensor, rank: int) -> bool:
    """Whether a rank has its columns of a tensor, or all of it."""
    whole = expected if ours.shape == expected.shape else expected.chunk(WORLD, -1)[rank]
    return bool(torch.allclose(torch.as_tensor(ours), whole, atol=1e-6))


@scenario(hooks_are_inert)
def parallel_trace(rank: int, path: Path) -> Any:
    model, bare, x = _halves(rank)
    same = []
    for step in range(STEPS):
        tapes = []
        for each in (model, bare):
            with nethook.trace(each, grads=True) as tape:
                each(x + step).square().mean().backward()
            tapes.append(tape)
        for site in ("0", "1", "2"):
            same.append(_close(tapes[0][site].output, tapes[1][site].output, rank))
            same.append(_close(tapes[0][site].grad, tapes[1][site].grad, rank))
    return same


@scenario(edits_are_inert)
def parallel_edit(rank: int, path: Path) -> Any:
    model, bare, x = _halves(rank)
    outs = []
    for each in (model, bare):
        with nethook.edit(each, outputs={"1": edits.scale(2.0)}):
            outs.append([each(x + step).detach() for step in range(STEPS)])
    return [_close(ours, expected, rank) for ours, expected in zip(*outs, strict=True)]


@scenario(hooks_are_inert)
def parallel_features(rank: int, path: Path) -> Any:
    model, bare, x = _halves(rank)
    found = [nethook.features(each, x, at=["0", "2"]) for each in (model, bare)]
    return [_close(found[0][site], found[1][site], rank) for site in ("0", "2")]


# -- the program ----------------------------------------------------------------------------------


def _die(rank: int, place: Path) -> None:
    """Rank 1 is killed in the middle of its training; what it has written by then is whole."""
    model = network("mlp")
    optimizer = _adam(model)
    watch = nethook.watch(model, optimizer, to=place / "died.db", **WATCH)
    for x, y in batches("mlp", 5):
        _step(model, optimizer, x, y)
    if rank == 1:
        watch._session.journal.writer.flush()  # as it is every second
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    watch.close()


def main() -> None:
    """Runs everything."""
    rank, place = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{place}/store", rank=rank, world_size=WORLD
    )
    results = run_all(rank, place)
    (place / f"rank{rank}.json").write_text(json.dumps(results))
    dist.barrier()
    _die(rank, place)
    os._exit(0)  # its peer is gone


if __name__ == "__main__":
    main()
