"""Threads, tasks and processes: whose calls a scope sees."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import nethook
from nethook import edits
from nethook.errors import NotRunError, UnfiredError
from nethook.hooks.threads import enter, stay
from tests.modes.matrix import cell, mode
from tests.modes.steps import STEPS, batches, network, patched, same, train, watching

GROUP = "Threads and processes"
OTHER = mode(GROUP, "another thread", "it calls the model while a scope is open")
ALL = mode(
    GROUP, '`threads="all"`', "the calls of every thread", features="it runs the model itself"
)
SERVER = mode(
    GROUP, "a server", "requests in a pool of threads, one model",
    watch="a watch follows one training run; see the rows above",
)  # fmt: skip
TASKS = mode(
    GROUP, "`asyncio`", "several tasks in one thread",
    features="it does not wait for anything", watch="training does not wait for others",
)  # fmt: skip
FORK = mode(GROUP, "`fork`", "everything is off in the child", features="nothing stays attached")
SPAWN = mode(
    GROUP,
    "`spawn`",
    "a watched model is sent to another process",
    **dict.fromkeys(("trace", "edit", "features"), "as for `watch`: copies have no hooks"),
)
LOADER = mode(
    GROUP,
    "`DataLoader` workers",
    "forked in the middle of a watch",
    **dict.fromkeys(("trace", "edit", "features"), "as for `fork`"),
)
GARBAGE = mode(GROUP, "garbage collection", "at any moment", features="as for `trace`")


def _nobody_is_elsewhere() -> Any:
    return _everywhere(lambda *_: False)


@contextmanager
def _everywhere(elsewhere: Callable[..., bool]) -> Iterator[None]:
    rooms = ("tracing.taps", "editing.changes", "watching.measuring.taps", "hooks.ops.watch")
    with (
        patched(f"nethook.{rooms[0]}.elsewhere", elsewhere),
        patched(f"nethook.{rooms[1]}.elsewhere", elsewhere),
        patched(f"nethook.{rooms[2]}.elsewhere", elsewhere),
        patched(f"nethook.{rooms[3]}.elsewhere", elsewhere),
    ):
        yield


@contextmanager
def _all_at_once() -> Iterator[None]:
    """Threads do not take turns either."""
    turns = patched("nethook.restoring.unchanged._one_at_a_time", nullcontext())
    with turns, _nobody_is_elsewhere():
        yield


@contextmanager
def _only_own() -> Iterator[None]:
    """`threads="all"` is taken for "own"."""
    with (
        patched(
            "nethook.hooks.scope.enter", lambda owner, _, *models: enter(owner, "own", *models)
        ),
        patched("nethook.hooks.scope.stay", lambda owner, _, *models: stay(owner, "own", *models)),
    ):
        yield


def _in_thread(call: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


# -- another thread -------------------------------------------------------------------------------


@cell(
    "trace", OTHER, "mlp", guard=_nobody_is_elsewhere, without="calls of other threads are recorded"
)
def trace_sees_its_own_thread(name: str) -> None:
    model = network(name)
    for x, _ in batches(name):
        with nethook.trace(model, inputs=True) as tape:
            _in_thread(lambda x=x: model(x + 1))
            model(x)
        assert torch.equal(tape["0"].input, x)
        with nethook.trace(model) as tape:
            _in_thread(lambda x=x: model(x))
        with pytest.raises(
            NotRunError, match=r'Another thread has called .*trace\(…, threads="all"'
        ):
            tape["0"].output


@cell(
    "edit", OTHER, "mlp", guard=_nobody_is_elsewhere, without="calls of other threads are changed"
)
def edit_changes_its_own_thread(name: str) -> None:
    model = network(name)
    for x, _ in batches(name):
        plain = model(x)
        with nethook.edit(model, outputs={"0": edits.zero()}):
            assert torch.equal(_in_thread(lambda x=x: model(x)), plain)
            assert not torch.equal(model(x), plain)
        with (
            pytest.raises(UnfiredError, match=r"Another thread has called the model meanwhile"),
            nethook.edit(model, outputs={"0": edits.zero()}),
        ):
            _in_thread(lambda x=x: model(x))


@cell(
    "features",
    OTHER,
    "mlp",
    guard=_nobody_is_elsewhere,
    without="they are those of another thread's call",
)
def features_of_its_own_call(name: str) -> None:
    model = network(name)
    for x, _ in batches(name):
        expected = model[0](x)
        mine = threading.get_ident()

        def call(x: torch.Tensor = x) -> None:
            with suppress(BaseException):  # what stops our forward would stop this one
                model(x + 1)

        def let_another_in(*_: Any, mine: int = mine, call: Any = call) -> None:
            if threading.get_ident() == mine:
                _in_thread(call)

        handle = model.register_forward_pre_hook(let_another_in)
        found = nethook.features(model, x, at=["0", "2"])
        handle.remove()
        assert torch.equal(found["0"], expected)


@cell(
    "watch",
    OTHER,
    "mlp",
    guard=_nobody_is_elsewhere,
    without="calls of a server are counted as training",
)
def watch_follows_the_training(name: str) -> None:
    rows = []
    for served in (False, True):
        model = network(name)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with watching(model, optimizer) as recorded:
            for x, y in batches(name):
                train(model, [(x, y)], optimizer)
                if served:
                    _in_thread(lambda x=x, model=model: model(x + 1))
        rows.append(recorded)
    same(rows[1], rows[0], ("outputs", "grads", "param_grads"))


# -- all threads ----------------------------------------------------------------------------------


@cell("trace", ALL, "mlp", guard=_only_own, without="nothing is recorded")
def trace_of_every_thread(name: str) -> None:
    model = network(name)
    given = [x for x, _ in batches(name, 12)]
    with nethook.trace(model, inputs=True, grads=True, threads="all") as tape:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda x: model(x).sum().backward(), given))
    calls = tape["0"].calls
    assert len(calls) == len(given) == tape.forwards
    assert len({call.forward for call in calls}) == len(given)
    for call in calls:
        assert any(torch.equal(call.input, x) for x in given)
        assert torch.equal(call.output, model[0](call.input))


@cell("edit", ALL, "mlp", guard=_only_own, without="nothing is changed")
def edit_in_every_thread(name: str) -> None:
    model = network(name)
    given = [x for x, _ in batches(name, 12)]
    plain = [model(x) for x in given]
    with nethook.edit(model, outputs={"2": edits.scale(2.0)}, threads="all") as scope:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(model, given))
    assert all(torch.equal(out, 2 * other) for out, other in zip(found, plain, strict=True))
    assert sum(scope.firings.values()) == len(given)


@cell("watch", ALL, "mlp", guard=_only_own, without="other threads are left out")
def watch_of_every_thread(name: str) -> None:
    model = network(name)
    given = [x for x, _ in batches(name, 12)]
    with watching(model, threads="all") as rows:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda x: model(x).sum().backward(), given))
    assert rows["0", "outputs"]["count"].sum() == len(given) * 8 * 16
    assert rows["0", "grads"]["count"].sum() == len(given) * 8 * 16


# -- a server -------------------------------------------------------------------------------------


def _requests(name: str, answer: Callable[[nn.Module, int, torch.Tensor], None]) -> None:
    """Sixty requests in eight threads, each of which lets the others go on in its midst."""
    model = network(name).eval()
    x = batches(name)[0][0]
    pause = model[1].register_forward_pre_hook(lambda *_: time.sleep(0.001))

    def request(number: int) -> None:
        try:
            answer(model, number, x + number)
        except BaseException as error:  # also what ends the forward of another request
            raise AssertionError(str(error)) from error

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(request, range(60)))
    pause.remove()
    assert len(nethook.audit(model)) == 0


@cell("trace", SERVER, "mlp", guard=_nobody_is_elsewhere, without="requests see each other")
def trace_in_a_server(name: str) -> None:
    def answer(model: nn.Module, number: int, x: torch.Tensor) -> None:
        with nethook.trace(model, "0", "2", "0/linear", inputs=True) as tape:
            out = model(x)
        assert torch.equal(tape["0"].input, x)
        assert torch.equal(tape["0/linear"].output, tape["0"].output)
        assert torch.equal(tape["2"].output, out)

    _requests(name, answer)


@cell("edit", SERVER, "mlp", guard=_nobody_is_elsewhere, without="requests change each other")
def edit_in_a_server(name: str) -> None:
    bare = network(name).eval()

    def answer(model: nn.Module, number: int, x: torch.Tensor) -> None:
        with nethook.edit(model, outputs={"2": edits.scale(float(number))}):
            out = model(x)
        assert torch.equal(out, bare(x) * number)

    _requests(name, answer)


@cell("features", SERVER, "mlp", guard=_all_at_once, without="requests get others' features")
def features_in_a_server(name: str) -> None:
    bare = network(name).eval()

    def answer(model: nn.Module, number: int, x: torch.Tensor) -> None:
        assert torch.equal(nethook.features(model, x, at="0"), bare[0](x))

    _requests(name, answer)


# -- tasks ----------------------------------------------------------------------------------------


def _tasks(name: str, answer: Callable[..., Any]) -> None:
    model = network(name).eval()
    x = batches(name)[0][0]

    async def all_of_them() -> None:
        await asyncio.gather(*(answer(model, number, x + number) for number in range(STEPS)))

    asyncio.run(all_of_them())


@cell("trace", TASKS, "mlp", guard=_nobody_is_elsewhere, without="tasks see each other")
def trace_in_tasks(name: str) -> None:
    async def answer(model: nn.Module, number: int, x: torch.Tensor) -> None:
        with nethook.trace(model, inputs=True) as tape:
            await asyncio.sleep(0)
            await asyncio.to_thread(model, x)
            await asyncio.sleep(0)
        assert torch.equal(tape["0"].input, x)

    _tasks(name, answer)


@cell("edit", TASKS, "mlp", guard=_nobody_is_elsewhere, without="tasks change each other")
def edit_in_tasks(name: str) -> None:
    bare = network(name).eval()

    async def answer(model: nn.Module, number: int, x: torch.Tensor) -> None:
        with nethook.edit(model, outputs={"2": edits.scale(float(number))}):
            await asyncio.sleep(0)
            out = model(x)
            await asyncio.sleep(0)
        assert torch.equal(out, bare(x) * number)

    _tasks(name, answer)


# -- processes ------------------------------------------------------------------------------------


def _forked(work: Callable[[], int]) -> int:
    """What a forked child returns: a small number."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = work()
        except BaseException:
            traceback.print_exc()  # nobody else would say why
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def _on_in_children() -> Iterator[None]:
    with (
        patched("nethook.hooks.threads._off_in_child", lambda: None),
        patched("nethook.watching.fail_open._off_in_child", lambda: None),
    ):
        yield


@cell(
    "trace",
    FORK,
    "mlp",
    guard=_on_in_children,
    without="the child records calls that nobody can read",
)
def trace_and_fork(name: str) -> None:
    model = network(name)
    with nethook.trace(model) as tape:
        for x, _ in batches(name):
            assert _forked(lambda x=x: (model(x), len(tape["0"].entries))[1]) == tape.forwards
            model(x)


@cell("edit", FORK, "mlp", guard=_on_in_children, without="the child's calls are changed")
def edit_and_fork(name: str) -> None:
    model = network(name)
    for x, _ in batches(name):
        plain = model(x)
        with nethook.edit(model, outputs={"0": edits.zero()}):
            assert _forked(lambda x=x, plain=plain: int(torch.equal(model(x), plain))) == 1
            assert not torch.equal(model(x), plain)


@cell(
    "watch", FORK, "mlp", guard=_on_in_children, without="the child continues to watch",
    elsewhere=True,
)  # fmt: skip
def watch_and_fork(name: str, off: Callable[[], Any]) -> None:
    # In a process of its own. Once torch has started threads for backward passes, as 2.15 does for
    # compiled models, no forked child can run one, watched or not.
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_watched_and_forked, args=(name, off))
    process.start()
    process.join()
    assert process.exitcode == 0


def _watched_and_forked(name: str, off: Callable[[], Any]) -> None:
    with off():
        _watch_and_fork(name)


def _watch_and_fork(name: str) -> None:
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook_watch(model, optimizer) as watch:
        for batch in batches(name):
            train(model, [batch], optimizer)
            session = watch._session

            def trained(batch: Any = batch, session: Any = session) -> int:
                train(model, [batch], optimizer)
                return session.clock.totals["forwards"]

            assert _forked(trained) == session.clock.totals["forwards"]


@contextmanager
def nethook_watch(model: nn.Module, optimizer: Any) -> Iterator[Any]:
    """A watch whose file nobody needs."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        watch = nethook.watch(model, optimizer, to=Path(folder) / "run.db", budget=None)
        watch.be_silent()
        with watch:
            yield watch


class _Samples(Dataset[Any]):
    """Samples that a worker runs through the watched model."""

    def __init__(self, model: nn.Module, x: torch.Tensor) -> None:
        self._model = model
        self._x = x

    def __len__(self) -> int:
        return len(self._x)

    def __getitem__(self, at: int) -> torch.Tensor:
        with torch.no_grad():
            return self._model(self._x[at : at + 1])[0]


@cell("watch", LOADER, "mlp", guard=_on_in_children, without="each worker watches, too")
def watch_and_workers(name: str) -> None:
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook_watch(model, optimizer) as watch:
        train(model, batches(name), optimizer)
        x = batches(name)[0][0]
        alive = _Alive(model, x, watch)
        loader = DataLoader(alive, batch_size=4, num_workers=1, multiprocessing_context="fork")
        found = torch.cat(list(loader))
        assert found.tolist() == [0.0] * len(x)
        train(model, batches(name), optimizer)
        assert watch.step == 2 * STEPS


class _Alive(_Samples):
    """Whether watching goes on where the sample is made."""

    def __init__(self, model: nn.Module, x: torch.Tensor, watch: Any) -> None:
        super().__init__(model, x)
        self._guard = watch._session.journal.guard

    def __getitem__(self, at: int) -> torch.Tensor:
        super().__getitem__(at)
        return torch.tensor(float(self._guard.alive))


@contextmanager
def _hooks_travel() -> Iterator[None]:
    """A pickled hook is itself again on the other side."""
    with (
        patched("nethook.hooks.saving.is_ours", lambda _: False),
        patched("nethook.hooks.hook.Hook.__reduce__", object.__reduce__),
    ):
        yield


@cell("watch", SPAWN, "mlp", guard=_hooks_travel, without="the model cannot be sent at all")
def watch_and_spawn(name: str) -> None:
    import pickle

    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook_watch(model, optimizer) as watch:
        train(model, batches(name), optimizer)
        sent = pickle.loads(pickle.dumps(model))  # what spawn does with what it is given
        assert not any(each._forward_hooks or each._forward_pre_hooks for each in sent.modules())
        x = batches(name)[0][0]
        assert torch.equal(sent(x), model(x))
        assert watch.step == STEPS


# -- garbage --------------------------------------------------------------------------------------


class _Collects(nn.Module):
    """A layer that collects garbage whenever it is called."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gc.collect()
        return x


def _collecting(name: str) -> nn.Sequential:
    model = network(name)
    return nn.Sequential(*model[:2], _Collects(), *model[2:])


def _scope_dies() -> Any:
    """An attachment that nothing holds, as one in a hook would be."""
    from nethook.hooks.attachment import Attachment

    def put_on(self: Any, *hooks: Any) -> None:
        del self, hooks

    return patched(f"{Attachment.__module__}.Attachment._put_on", put_on)


@cell("trace", GARBAGE, "mlp", guard=_scope_dies, without="hooks are lost")
def trace_and_garbage(name: str) -> None:
    model, bare = _collecting(name), network(name)
    for x, _ in batches(name):
        with nethook.trace(model, grads=True) as tape:
            model(x).sum().backward()
            gc.collect()
        assert torch.equal(tape["0"].output, bare[0](x))
        assert tape["0"].grad.shape == tape["0"].output.shape


@cell("edit", GARBAGE, "mlp", guard=_scope_dies, without="nothing is changed")
def edit_and_garbage(name: str) -> None:
    model, bare = _collecting(name), network(name)
    for x, _ in batches(name):
        with nethook.edit(model, outputs={"3": edits.scale(2.0)}):
            out = model(x)
        assert torch.equal(out, 2 * bare(x))


@cell("watch", GARBAGE, "mlp", guard=_scope_dies, without="nothing is recorded")
def watch_and_garbage(name: str) -> None:
    rows = []
    for model in (_collecting(name), network(name)):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with watching(model, optimizer) as recorded:
            train(model, batches(name), optimizer)
        rows.append({key: row for key, row in recorded.items() if key[0] in ("0", "1")})
    same(rows[0], rows[1])
