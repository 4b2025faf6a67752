"""A session meets models at their first call, hands them to its watcher, and leaves nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.audit import audit
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.registries import global_hooks
from nethook.running.detecting import discover
from nethook.running.detecting.following import Session
from nethook.running.options import RunOptions


class Recorder:
    """A stand-in for a watch: remembers what it was given, and when forwards had run."""

    paths: ClassVar[list[Path]] = [Path("nowhere.db")]
    left_alone: ClassVar[list[Path]] = []
    notes: ClassVar[list[str]] = []
    problems: ClassVar[list[str]] = []

    def __init__(
        self,
        _: RunOptions,
        models: Mapping[str, nn.Module],
        optimizers: Sequence[torch.optim.Optimizer],
    ) -> None:
        self.given: list[dict[str, nn.Module]] = []
        self.told: list[list[torch.optim.Optimizer]] = []
        self.ended: list[str] = []
        self.kept: dict[str, object] = {}
        self.add(models, optimizers)

    def add(
        self, models: Mapping[str, nn.Module], optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        self.given.append(dict(models))
        self.told.append(list(optimizers))

    def settle(self, trained: AbstractSet[int]) -> None:
        self.ended += ["settled"] if trained else []

    def keep(self, **facts: object) -> None:
        self.kept = dict(facts)

    def close(self) -> None:
        self.ended.append("closed")

    def abandon(self) -> None:
        self.ended.append("abandoned")


class Counting(nn.Linear):
    runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Counting.runs += 1
        return super().forward(x)


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the census of the session finds, instead of all that other tests have left."""
    objects: list[object] = []

    def take() -> discover.Census:
        found = [p for o in objects for p in (o.modules() if isinstance(o, nn.Module) else [o])]
        return discover.census_of(dict.fromkeys(found))

    monkeypatch.setattr(discover, "take_census", take)
    return objects


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session(RunOptions("nowhere.db"), Recorder)
    session.begin()
    yield session
    session.end()


def given(session: Session) -> list[list[nn.Module]]:
    assert session.watcher is None or isinstance(session.watcher, Recorder)
    return [] if session.watcher is None else [list(g.values()) for g in session.watcher.given]


def on(session: Session) -> bool:
    assert session._newcomers is not None
    return session._newcomers.on


def sgd(model: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()


def test_a_model_is_met_before_its_first_forward_and_then_nobody_listens(
    session: Session, alive: list[object]
) -> None:
    model = nn.Sequential(Counting(3, 3), nn.ReLU())
    alive += [model, optimizer := sgd(model)]
    before = Counting.runs
    seen: list[int] = []
    session._start = lambda *a: (seen.append(Counting.runs - before), Recorder(*a))[1]
    step(model, optimizer)
    assert seen == [0]
    assert session.watcher.told == [[optimizer]]  # so that nobody has to look for it again
    assert given(session) == [[model]]
    assert not on(session)
    step(model, optimizer)
    assert given(session) == [[model]]


class Noticing(Recorder):
    """Puts a hook on the first model, as a watch does, that notes what it is called with."""

    calls: ClassVar[list[object]] = []
    attached: ClassVar[list[Attachment]] = []

    class Tap(Hook):
        __slots__ = ()

        def __call__(self, module: nn.Module, args: object, kwargs: object) -> None:
            Noticing.calls.append((args, kwargs))

    def add(
        self, models: Mapping[str, nn.Module], optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        super().add(models, optimizers)
        hooks = Attachment(Owner("test"))
        self.attached.append(hooks)
        for model in models.values():
            hooks.forward_pre(model, self.Tap(hooks.owner, ""))


def test_what_is_put_on_sees_the_call_that_is_under_way(alive: list[object]) -> None:
    session = Session(RunOptions("nowhere.db"), Noticing)
    session.begin()
    model = nn.Linear(3, 3)
    alive += [model, sgd(model)]
    Noticing.calls.clear()
    x = torch.ones(2, 3)
    model(x)
    model(input=x)
    session.end()
    assert Noticing.calls == [((x,), {}), ((), {"input": x})]
    for attachment in Noticing.attached:  # not in the midst of a call: torch would go on to it
        attachment.remove()
    session = Session(RunOptions("nowhere.db"), Noticing)
    session.begin()
    model(input=x)
    session.end()
    assert Noticing.calls[-1] == ((), {"input": x})
    while Noticing.attached:
        Noticing.attached.pop().remove()


def test_a_model_that_is_built_late_is_met_as_well(session: Session, alive: list[object]) -> None:
    first = nn.Linear(3, 3)
    alive += [first, optimizer := sgd(first)]
    step(first, optimizer)
    second = nn.Linear(3, 2)  # which turns the listening on
    assert on(session)
    alive += [second, later := sgd(second)]
    step(second, later)
    assert given(session) == [[first], [second]]
    assert list(session.models.values()) == ["Linear", "Linear"]
    assert len(session.models) == 2


def test_a_copy_with_an_optimizer_of_its_own_is_met_after_its_first_step(
    session: Session, alive: list[object]
) -> None:
    import copy

    first = nn.Linear(3, 3)
    alive += [first, optimizer := sgd(first)]
    step(first, optimizer)
    second = copy.deepcopy(first)
    alive += [second, later := sgd(second)]
    assert not on(session)
    step(second, later)
    step(second, later)
    assert given(session) == [[first], [second]]


def test_evaluation_alone_is_not_followed(session: Session, alive: list[object]) -> None:
    model = nn.Linear(3, 3)
    alive.append(model)
    with torch.no_grad():
        model(torch.ones(2, 3))
    assert given(session) == []
    assert on(session)
    model(torch.ones(2, 3))  # with gradient, and no optimizer anywhere
    assert given(session) == [[model]]


def test_what_no_module_call_leads_to_is_named(session: Session, alive: list[object]) -> None:
    class Raw(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

    raw, image = Raw(), nn.Parameter(torch.ones(4))
    alive += [raw, one := sgd(raw), other := torch.optim.SGD([image], lr=0.1)]
    for _ in range(6):
        one.step()
        other.step()
    assert len(session.notes) == 2
    assert "Raw" in session.notes[0]
    assert session.notes[1] == "Not followed: 1 tensor that SGD trains: it is in no module."


def test_nothing_is_left_when_it_ends(alive: list[object]) -> None:
    model = nn.Linear(3, 3)
    before = (audit(model), list(global_hooks()), torch.jit.script, torch.jit.trace)
    session = Session(RunOptions("nowhere.db"), Recorder)
    session.begin()
    alive += [model, optimizer := sgd(model)]
    step(model, optimizer)
    watcher = session.watcher
    session.end()
    session.end()
    assert isinstance(watcher, Recorder)
    assert watcher.ended == ["closed"]
    assert (audit(model), list(global_hooks()), torch.jit.script, torch.jit.trace) == before


def test_a_forked_child_leaves_the_watcher_alone(session: Session, alive: list[object]) -> None:
    model = nn.Linear(3, 3)
    alive += [model, optimizer := sgd(model)]
    step(model, optimizer)
    watcher = session.watcher
    session.abandon()
    assert isinstance(watcher, Recorder)
    assert watcher.ended == ["abandoned"]
    assert not list(global_hooks())


def test_an_error_of_ours_ends_the_following_and_not_the_script(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> discover.Census:
        raise RuntimeError("inside")

    monkeypatch.setattr(discover, "take_census", fail)
    model = nn.Linear(3, 3)
    step(model, sgd(model))
    assert session.notes == ["nethook could not follow the models: RuntimeError: inside."]
    assert not list(global_hooks())


def test_a_compiled_model_is_met_without_torch_warning_of_global_hooks(
    session: Session, alive: list[object]
) -> None:
    model = torch.compile(nn.Linear(3, 3), backend="eager", fullgraph=True)
    alive += [model, optimizer := sgd(model)]
    assert on(session)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Guards may run slower on Python 3.13.0")
        step(model, optimizer)
    assert given(session) == [[model]]
    # A global hook of somebody else's is still warned of.
    handle = nn.modules.module.register_module_forward_pre_hook(lambda *_: None)
    try:
        with pytest.warns(UserWarning, match="global hooks"):
            model(torch.ones(2, 3))
        nn.Linear(1, 1)
        assert on(session)
        with pytest.warns(UserWarning, match="global hooks"):
            model(torch.ones(2, 3))
    finally:
        handle.remove()


def test_a_compiled_function_is_compiled_whole_while_it_listens(
    session: Session, alive: list[object]
) -> None:
    model = nn.Linear(3, 3)
    alive += [model, sgd(model)]

    @torch.compile(backend="eager", fullgraph=True)
    def forward(x: torch.Tensor) -> torch.Tensor:
        return model(x).relu()

    result = forward(torch.ones(2, 3))
    assert given(session) == [[model]]  # before it was compiled, so that taps are in the graph
    assert torch.equal(result, model(torch.ones(2, 3)).relu())


def test_exports_are_made_without_hooks(session: Session) -> None:
    from nethook.tracing.scope import trace

    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval()
    x = torch.ones(1, 3)
    with trace(model, "0"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit")  # deprecated, from 2.10 on
        model(x)
        scripted = torch.jit.script(model)
        traced = torch.jit.trace(model, x)
        program = torch.export.export(model, (x,))
        assert len(audit(model).ours) > 0
    assert torch.equal(scripted(x), model(x))
    assert torch.equal(traced(x), model(x))
    assert torch.equal(program.module()(x), model(x))


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_scripted_classes_find_their_names(session: Session) -> None:
    from tests.running.scripted import scripted_class

    assert scripted_class()(2).times(torch.ones(1)) == 6


class Lazy(nn.Module):
    def __init__(self, *, used: bool = True) -> None:
        super().__init__()
        self.first, self.second = nn.LazyLinear(3), nn.LazyLinear(2)
        self.used = used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return self.second(y) if self.used else y


def test_a_lazy_model_is_followed_once_its_parameters_exist(
    alive: list[object], session: Session
) -> None:
    model, other = Lazy(), nn.Linear(5, 5)
    alive += [model, other, torch.optim.SGD([*model.parameters(), *other.parameters()], 0.1)]
    other(torch.ones(1, 5))  # which need not wait
    assert given(session) == [[other]]
    model(torch.ones(1, 5))
    assert given(session) == [[other]], "not in the middle of the call that makes them"
    model(torch.ones(1, 5))
    assert given(session) == [[other], [model]]
    assert any("Lazy was followed from its second call" in note for note in session.notes)
    session.end()
    assert not any("Not followed" in note for note in session.notes)


def test_a_lazy_model_whose_parameters_are_never_made_is_named(
    alive: list[object], session: Session
) -> None:
    model = Lazy(used=False)
    alive += [model, torch.optim.SGD(model.parameters(), 0.1)]
    for _ in range(3):
        model(torch.ones(1, 5))
    assert given(session) == []
    session.end()
    assert "Not followed: Lazy; no forward gave its parameter second.weight a shape." in (
        session.notes
    )


def test_a_model_that_no_optimizer_holds_is_followed_from_its_backward_pass(
    session: Session, alive: list[object]
) -> None:
    """Its layers were made anew after the optimizer was: what that holds is in no module."""
    model = nn.Sequential(nn.Linear(3, 2))
    old = torch.optim.SGD([nn.Parameter(torch.ones(7))], lr=0.1)
    alive += [model, old]
    step(model, old)
    assert given(session) == [[model]]
    step(model, old)
    assert given(session) == [[model]]


def test_an_image_that_is_optimized_is_not_the_network_that_judges_it(
    session: Session, alive: list[object]
) -> None:
    model, image = nn.Sequential(nn.Linear(3, 2)), torch.ones(5, 3, requires_grad=True)
    alive += [model, optimizer := torch.optim.SGD([image], lr=0.1)]
    for _ in range(3):
        model(image).sum().backward()
        optimizer.step()
    assert given(session) == []


def test_tensors_of_no_module_are_followed(session: Session, alive: list[object]) -> None:
    w = torch.ones(3, 2, requires_grad=True)
    for _ in range(3):
        (torch.ones(2, 3) @ w).sum().backward()
        w.data -= 0.1 * w.grad
    ((tensors,),) = given(session)
    assert next(tensors.parameters()) is w


def test_backward_passes_are_looked_at_a_few_times_only(
    session: Session, alive: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(discover, "leaves_behind", lambda _: looked.append(1) or {})
    x = torch.ones(1, requires_grad=True)
    for _ in range(20):
        (2 * x).sum().backward()
    assert len(looked) == 8


class Symbol:
    """Stands for a tensor while a model is put together, as Keras' tensors do."""


class Kept(nn.Module):
    """As a model of Keras: its layers are no submodules, their parameters are its own."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = layers  # a plain list would do the same in torch
        for number, layer in enumerate(layers):
            for name, parameter in layer.named_parameters():
                self.register_parameter(f"{number}_{name}", parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class OfSymbols(nn.Linear):
    def forward(self, x: torch.Tensor | Symbol) -> torch.Tensor | Symbol:
        return x if isinstance(x, Symbol) else super().forward(x)


@pytest.mark.parametrize("symbol", [Symbol(), torch.ones(2, 3, device="meta")])
def test_a_layer_that_is_called_with_symbols_is_no_model(
    session: Session, alive: list[object], symbol: object
) -> None:
    layers: list[nn.Module] = [OfSymbols(3, 3), OfSymbols(3, 1)]
    alive += layers
    for layer in layers:
        layer.to(symbol.device if isinstance(symbol, torch.Tensor) else "cpu")(symbol)
    assert given(session) == []
    layers = [OfSymbols(3, 3), OfSymbols(3, 1)]
    model = Kept(layers)
    alive[:] = [*layers, model]
    model(torch.ones(2, 3)).sum().backward()
    assert given(session) == [[model]]


def test_a_model_without_arguments_is_met_at_its_call(
    session: Session, alive: list[object]
) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self) -> torch.Tensor:
            return self.weight.sum()

    model = Own()
    alive += [model, sgd(model)]
    model().backward()
    assert given(session) == [[model]]
