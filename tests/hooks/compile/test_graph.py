"""What is inside a compiled graph is shown whenever it runs: values, gradients, calls."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.utils import run_fw_bw_and_get_code

from nethook.hooks.compile import graph
from nethook.hooks.compile.graph import Shown, numbered, show, show_call, shown
from tests.modes.compiling import fresh

# Torch's own, while it compiles.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


class Value(NamedTuple):
    value: Tensor
    training: bool
    first: bool


class Told:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.grads: list[Tensor] = []
        self.calls: list[tuple[list[Tensor], bool]] = []
        self.site = numbered(self)
        self.back = numbered(self)

    def value_in_graph(self, value: Tensor, training: bool, first: bool) -> None:
        self.values.append(Value(value.clone(), training, first))

    def grad_in_graph(self, grad: Tensor) -> None:
        self.grads.append(grad.clone())

    def call_in_graph(self, values: list[Tensor], training: bool) -> None:
        self.calls.append(([each.clone() for each in values], training))


class Module(nn.Module):
    """Returns what a function makes of its input, which is then shown as a hook does it."""

    def __init__(self, run: Callable[..., Any], told: Told, grads: bool = True) -> None:
        super().__init__()
        self.run = run
        site, back = told.site, told.back if grads else None
        self.register_forward_hook(lambda _, args, output: show(site, args, output, back))

    def forward(self, *args: Any) -> Any:
        return self.run(*args)


@pytest.fixture(autouse=True)
def _compiled_anew() -> Iterator[None]:
    with fresh():
        yield
    assert shown.on


@pytest.fixture
def told() -> Told:
    return Told()


def compiled(call: Any, backend: str = "aot_eager") -> Any:
    return torch.compile(call, backend=backend, fullgraph=True)


def x() -> Tensor:
    return torch.arange(1.0, 5.0).reshape(2, 2).requires_grad_()


def same(found: list[Tensor], expected: list[Tensor]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_value_and_its_gradient_are_shown_at_every_run(told: Told, backend: str) -> None:
    model = compiled(Module(lambda x: x * 3, told), backend)
    for times in (1, 2):
        given = x()
        out = model(given)
        assert [each[1:] for each in told.values] == [(True, True)] * times
        assert torch.equal(told.values[-1].value, given.detach() * 3)
        assert len(told.grads) == times - 1
        (out * 5).sum().backward()
        same(told.grads, [torch.full((2, 2), 5.0)] * times)
        assert given.grad is not None
        assert torch.equal(given.grad, torch.full((2, 2), 15.0))


@pytest.mark.filterwarnings("ignore")  # Inductor has many
def test_inductor_calls_each_operation_once_and_copies_nothing_for_it(told: Told) -> None:
    given, weight = torch.randn(8, 4, requires_grad=True), torch.randn(4, 4)
    run = compiled(Module(lambda x: (x @ weight).relu(), told), "inductor")
    with torch._inductor.config.patch(fx_graph_cache=False):
        _, codes = run_fw_bw_and_get_code(lambda: run(given))
    calls = [line for line in "\n".join(codes).splitlines() if "torch.ops.nethook." in line]
    assert [line.split("(")[0].split(".nethook.")[1] for line in calls] == [
        "show_value.default",
        "show_grad.default",
    ]
    # The numbers are inputs of the graphs, and go on as they are.
    assert not any("reinterpret_tensor" in line.split(",", 1)[1] for line in calls)
    out = (given @ weight).relu()
    assert torch.equal(told.values[0].value, out)
    assert torch.equal(told.grads[0], torch.ones_like(out))


def test_without_gradient_only_values_are_shown(told: Told) -> None:
    model = compiled(Module(lambda x: x * 3, told))
    with torch.no_grad():
        model(x())
    model(x().detach())
    assert [each[1:] for each in told.values] == [(False, True), (True, True)]
    assert told.grads == []


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_without_gradient_nothing_is_asked_of_what_a_module_was_given(
    told: Told, backend: str
) -> None:
    """It has a history from before, and its gradient is none of this pass."""
    model = compiled(Module(lambda x: x, told), backend)
    mine = x() * 1
    with torch.no_grad():
        model(mine)
    (mine * 2).sum().backward()
    assert [value[1:] for value in told.values] == [(False, True)]
    assert told.grads == []


def test_gradients_are_shown_where_they_are_wanted(told: Told) -> None:
    for make in (lambda x: x * 3, lambda x: (x * 3,), lambda x: [x * 3], lambda x: {"a": x * 3}):
        out = compiled(Module(make, told, grads=False))(x())
        while not isinstance(out, Tensor):
            out = next(iter(out.values())) if isinstance(out, dict) else out[0]
        out.sum().backward()
    assert len(told.values) == 4
    assert told.grads == []


def test_every_tensor_of_a_nested_output_is_shown_the_first_of_a_call_as_such(told: Told) -> None:
    def run(x: Tensor) -> Any:
        return x * 2, (x * 3, 7, (None, x * 4)), "text"

    given = x()
    out = compiled(Module(run, told))(given)
    plain = given.detach()
    same([each.value for each in told.values], [plain * 2, plain * 3, plain * 4])
    assert told.values[0].first
    assert (type(out), type(out[1]), out[1][1], out[1][2][0], out[2]) == (
        tuple, tuple, 7, None, "text",
    )  # fmt: skip
    (out[0] + 10 * out[1][0] + 100 * out[1][2][1]).sum().backward()
    found = sorted(each[0, 0].item() for each in told.grads)
    assert found == [1.0, 10.0, 100.0]


def test_a_tuple_in_which_nothing_is_replaced_is_the_modules_own(told: Told) -> None:
    given = torch.ones(2)
    first, (second, third) = compiled(Module(lambda x: (x * 2, (x * 3, 7)), told))(given)
    assert torch.equal(first, given * 2)
    assert torch.equal(second, given * 3)
    assert third == 7
    assert told.values[0].first
    assert len(told.values) == 2


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_the_gradients_of_lists_and_mappings_are_asked_of_the_tensors(
    told: Told, kind: str
) -> None:
    def run(x: Tensor) -> Any:
        found = [x * 2, x * 3, 5]
        return found if kind == "list" else dict(zip("abc", found, strict=True))

    given = x()
    out = compiled(Module(run, told))(given)
    assert type(out).__name__ == kind
    one, other, number = out if kind == "list" else out.values()
    assert number == 5
    assert [each.first for each in told.values] == [True, False]
    same([each.value for each in told.values], [given.detach() * 2, given.detach() * 3])
    (one + 10 * other).sum().backward()
    assert sorted(each[0, 0].item() for each in told.grads) == [1.0, 10.0]


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x,
        lambda x: x.view(4),
        lambda x: x[:1],
    ],
)
def test_what_a_module_was_given_is_not_copied(told: Told, run: Callable[[Tensor], Tensor]) -> None:
    """What is written to the input afterwards is in the output, as it is without the hook."""
    module = Module(run, told)

    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        mine = x * 1
        out = module(mine)
        mine.mul_(10)
        return mine, out

    given = x()
    mine, out = compiled(step)(given)
    assert torch.equal(out, run(mine))
    assert torch.equal(told.values[0].value, run(given.detach()))


@pytest.mark.parametrize(
    "run",
    [lambda x, y: y, lambda x, y: y.view(4), lambda x, y: x.view(2, 2), lambda x, y: x.view(4)],
)
def test_a_view_of_any_argument_is_told_from_what_the_module_made(
    told: Told, run: Callable[[Tensor, Tensor], Tensor]
) -> None:
    module = Module(run, told)

    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        whole = x * 1
        part = whole.view(4)  # the module is given a view, and its base is not
        other = x * 2
        out = module(part, other)
        part.mul_(10)
        other.mul_(10)
        return run(part, other), out

    expected, out = compiled(step)(x())
    assert torch.equal(out, expected)


def test_the_base_of_what_a_module_was_given_is_not_copied(told: Told) -> None:
    class Base(nn.Module):
        def forward(self, part: Tensor) -> Tensor:
            assert part._base is not None
            return part._base

    module = Base()
    module.register_forward_hook(lambda _, args, output: show(told.site, args, output, told.back))

    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        whole = x * 1
        part = whole[:1]
        out = module(part)
        part.mul_(10)
        return whole, out

    whole, out = torch.compile(step, backend="eager")(x())
    assert torch.equal(out, whole)


@pytest.mark.parametrize("kind", [lambda x: x, lambda x: (x,), lambda x: [x]])
def test_a_leaf_that_is_returned_gets_no_hook(told: Told, kind: Callable[[Tensor], Any]) -> None:
    """It outlives the graph, and hooks on it would pile up."""
    weight = torch.ones(2, requires_grad=True)
    model = compiled(Module(lambda x: kind(weight), told), "eager")
    for _ in range(3):
        out = model(torch.ones(2))
        (out if isinstance(out, Tensor) else out[0]).sum().backward()
    assert len(told.values) == 3
    assert told.grads == []
    assert not weight._backward_hooks


def test_a_view_that_is_written_to_later_has_its_gradient_asked_of_its_base(told: Told) -> None:
    module = Module(lambda x: [(x * 3).view(4)], told)

    def step(x: Tensor) -> Tensor:
        [out] = module(x)
        out.mul_(10)
        return out

    step_out = compiled(step, "eager")(x())
    step_out.sum().backward()
    assert len(told.grads) == 1
    assert told.grads[0].sum() == 40.0


def test_a_part_of_what_was_made_has_a_gradient_of_its_own(told: Told) -> None:
    module = Module(lambda x: [(x * 3)[:1]], told)
    [out] = compiled(module)(x())
    out.sum().backward()
    same(told.grads, [torch.ones(1, 2)])


def test_of_a_view_of_the_input_the_gradient_is_its_own(told: Told) -> None:
    module = Module(lambda x: [x.view(4)], told)

    def step(x: Tensor) -> Tensor:
        mine = x * 1
        [out] = module(mine)
        return (out * 2).sum() + (mine * 100).sum()

    compiled(step)(x()).backward()
    same(told.grads, [torch.full((4,), 2.0)])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("given", [lambda x: x * 1, lambda x: (x * 1).view(4)])
def test_an_input_of_the_graph_that_a_module_returns_has_its_whole_gradient(
    told: Told, given: Callable[[Tensor], Tensor], backend: str
) -> None:
    module = Module(lambda x: x, told)

    def step(x: Tensor) -> Tensor:
        return (module(x) * 2).sum()

    run = compiled(step, backend)
    for _ in range(2):
        mine = given(x())
        (run(mine) + (mine * 100).sum()).backward()
    same(told.grads, [torch.full(mine.shape, 102.0)] * 2)


def test_calls_are_shown_with_their_tensors(told: Told) -> None:
    module = nn.Identity()
    module.register_forward_pre_hook(lambda _, args: show_call(told.site, args))

    def step(x: Tensor) -> Tensor:
        module([x, (x * 2, {"a": x * 3}), 4])
        return x * 1

    run = compiled(step)
    given = x()
    run(given)
    with torch.no_grad():
        run(given)
    assert [training for _, training in told.calls] == [True, False]
    plain = given.detach()
    for values, _ in told.calls:
        same(values, [plain, plain * 2, plain * 3])


class Loud(Tensor):
    pass


def test_tensors_of_other_classes_are_left_out() -> None:
    loud = torch.ones(2).as_subclass(Loud)
    plain = torch.ones(2)
    found = graph._tensors_in([loud, {"a": plain, "b": loud}, 3])
    assert [each is plain for each in found] == [True]


@pytest.mark.parametrize("off", [True, False])
def test_graphs_with_gradient_show_what_is_asked_for_and_others_always(
    told: Told, off: bool
) -> None:
    model = compiled(Module(lambda x: x * 3, told))
    shown.ask(told, not off)
    try:
        model(x()).sum().backward()
        assert len(told.values) == len(told.grads) == (0 if off else 1)
        with torch.no_grad():
            model(x())
        assert len(told.values) == (1 if off else 2)
    finally:
        shown.leave(told)


def test_one_that_asks_is_enough() -> None:
    asking = Shown()
    one, other = Told(), Told()
    assert asking.on
    asking.ask(one, False)
    assert not asking.on
    asking.ask(other, True)
    assert asking.on
    asking.ask(other, False)
    assert not asking.on
    asking.ask(one, True)
    asking.leave(one)
    assert not asking.on
    asking.leave(one)
    asking.leave(other)
    assert asking.on


def test_who_is_gone_is_told_nothing_and_forgotten(told: Told) -> None:
    before = len(graph._TOLD)
    model = compiled(Module(lambda x: x * 3, told))
    site = told.site
    model(x())
    del told
    gc.collect()
    model.zero_grad()
    number = int(site)
    graph._TOLD.pop(number, None)
    given = x()
    model(given).sum().backward()
    assert given.grad is not None
    show_call(site, [given])
    assert len(graph._TOLD) <= before


def test_numbers_differ_and_go_with_whom_they_mean() -> None:
    one, other = Told(), Told()
    assert int(one.site) != int(other.site)
    with torch.inference_mode():
        site = numbered(one)
    assert not site.is_inference()
    assert site.device.type == "cpu"
    numbers = {int(one.site), int(other.site)}
    assert numbers <= set(graph._TOLD)
    del one, other
    gc.collect()
    assert not numbers & set(graph._TOLD)


def test_each_block_is_told_of_its_own(told: Told) -> None:
    other = Told()
    for each in (told, other):
        block = nn.ReLU()
        block.register_forward_hook(_Shows(each.site, each.back))
        block.compile(backend="eager", fullgraph=True)
        block(torch.ones(2, requires_grad=True))
    assert [len(each.values) for each in (told, other)] == [1, 1]


class _Shows:
    def __init__(self, site: Tensor, back: Tensor) -> None:
        self.site = site
        self.back = back

    def __call__(self, _: nn.Module, args: Any, output: Any) -> Any:
        return show(self.site, args, output, self.back)


def test_exports_and_transforms_are_left_alone(told: Told) -> None:
    module = Module(lambda x: x * 3, told)
    module.register_forward_pre_hook(lambda _, args: show_call(told.site, args))
    program = torch.export.export(module, (torch.ones(2),), strict=False)
    assert "nethook" not in str(program.graph)
    found = torch.vmap(module)(torch.ones(2, 2))
    assert torch.equal(found, torch.full((2, 2), 3.0))
    assert told.values == []
    assert told.calls == []


def test_operations_are_as_torch_wants_them(told: Told) -> None:
    ops = torch.ops.nethook
    given = x()
    for op, args in (
        (ops.show_value, (given.detach(), told.site, True, True)),
        (ops.show_grad, (given.detach(), told.site)),
        (ops.through, (given, told.site)),
        (ops.show_call, ([given.detach()], told.site, False)),
    ):
        tags = op.default.tags
        assert torch.Tag.flexible_layout in tags
        assert torch.Tag.cudagraph_unsafe in tags
        checks = ("test_schema", "test_faketensor")
        # The number is declared to be written to and never is: the schema test would object.
        if op is ops.through:
            torch.library.opcheck(op.default, args, test_utils=checks)
        else:
            with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
                assert op(*args) is None
    # No version is counted and nothing is differentiated.
    version = told.site._version
    ops.show_value(given, told.site, True, True)
    assert told.site._version == version
    assert told.values[-1].value.requires_grad


def test_the_operation_that_asks_puts_a_hook_on_what_has_a_history(told: Told) -> None:
    """Before torch 2.13 graphs ask with it; here it is called as they do, on every torch."""
    made, leaf = x() * 3, x()
    # What stands for an input while a graph is made says that it has no history.
    stands_in = torch._C._functions.DelayedError("no history", 1)(x() * 1)
    for value in (made, leaf, stands_in):
        torch.ops.nethook.ask(value, told.back)
    assert not leaf._backward_hooks
    assert len(stands_in._backward_hooks) == 1
    (made * 5).sum().backward()
    same(told.grads, [torch.full((2, 2), 5.0)])


@pytest.mark.parametrize("name", ["value", "grad", "call"])
def test_no_operation_has_a_name_for_which_inductor_may_have_old_code(name: str) -> None:
    """On disk, from an earlier nethook; it calls functions that are no more."""
    assert not hasattr(torch.ops.nethook, name)


def test_through_is_a_copy_with_a_gradient_of_one(told: Told) -> None:
    given = x()
    out = torch.ops.nethook.through(given, told.site)
    assert torch.equal(out, given)
    assert out.data_ptr() != given.data_ptr()
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    (out * weights).sum().backward()
    assert given.grad is not None
    assert torch.equal(given.grad, weights)
    same(told.grads, [weights])
    with torch.inference_mode():
        plain = torch.ones(2)
        assert torch.equal(torch.ops.nethook.through(plain, told.site), plain)


def test_whom_a_number_means_is_known_by_the_tensor_and_by_the_number(told: Told) -> None:
    assert graph._told(told.site) is told
    assert graph._told(told.back) is told
    assert graph._told(told.site.clone()) is told  # as a graph may hand it on
    held = set(graph._HELD)
    other = Told()
    mine = {id(other.site), id(other.back)}
    site = other.site.clone()
    assert mine == set(graph._HELD) - held
    del other
    gc.collect()
    assert not mine & set(graph._HELD)
    assert graph._told(site) is None


def test_a_tensor_that_lies_where_another_lay_is_not_taken_for_it(told: Told) -> None:
    site = torch.tensor(int(told.site))
    other = Told()
    graph._HELD[id(site)] = graph._HELD[id(other.site)]
    try:
        assert graph._told(site) is told
    finally:
        del graph._HELD[id(site)]
