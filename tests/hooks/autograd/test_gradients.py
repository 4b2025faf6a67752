"""Asking a tensor for its gradient: leaves, views, writes in place, several backward passes.

The oracle is `torch.autograd.grad` of the same network written out of place.
"""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import nethook
from nethook.errors import NoGradientError
from nethook.hooks.attachment import Attachment
from nethook.hooks.autograd.gradients import Sink, _Version, ask
from nethook.hooks.hook import Owner
from nethook.hooks.modes import quiet
from tests.hooks.common import counted

Tensor = torch.Tensor


def asked(tensor: Tensor, given=(), owner: Owner | None = None, key: int = 0) -> Sink:
    """A sink at which the gradient of `tensor` arrives."""
    sink = Sink(Tensor.clone)
    ask(tensor, key, sink, owner or Owner("nethook.test"), "here", given)
    return sink


def grads(sink: Sink, key: int = 0) -> list[list[float]]:
    """What has arrived, pass by pass."""
    return [arrived[key].tolist() for arrived in sink.passes.values()]


def leaf(*shape: int) -> Tensor:
    """A leaf with numbers on both sides of zero."""
    generator = torch.Generator().manual_seed(3)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


WEIGHTS = torch.linspace(-2, 3, 24, dtype=torch.float64)


def weigh(tensor: Tensor) -> Tensor:
    """A scalar in which every element has a weight of its own."""
    return (tensor.reshape(-1) * WEIGHTS[: tensor.numel()]).sum()


# -- facts of torch that the rules stand on --------------------------------------------------------


def test_fact_a_hook_on_a_view_is_lost_when_the_view_is_written():
    seen = []
    view = nn.Linear(4, 3)(torch.ones(10, 4)).view(2, 5, 3)
    assert view._is_view()
    view.register_hook(seen.append)
    view.relu_()
    view.sum().backward()
    assert seen == []


def test_fact_hooks_on_a_leaf_pile_up():
    x, seen = torch.ones(2, requires_grad=True), []
    model = nn.Identity()
    model.register_forward_hook(lambda m, args, y: y.register_hook(seen.append) and None)
    for _ in range(3):
        model(x).sum().backward()
    assert len(seen) == 1 + 2 + 3


def test_fact_a_hook_that_holds_its_own_tensor_keeps_it_for_ever():
    def graph():
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: print(y) if grad is None else None)
        y.sum().backward()
        return weakref.ref(y)

    kept = graph()
    gc.collect()
    assert kept() is not None


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        return first * 2


def test_fact_a_hook_may_get_none_for_an_output_that_nothing_depends_on():
    x = torch.ones(2, requires_grad=True)
    a, b = Two.apply(x)
    sinks = [asked(a), asked(b)]
    a.sum().backward()
    assert grads(sinks[0]) == [[1.0, 1.0]]
    assert sinks[1].passes == {}


# -- plain tensors ---------------------------------------------------------------------------------


def test_a_tensor_inside_a_graph():
    x = leaf(3)
    y = x * 2
    sink = asked(y, key=7)
    weigh(y).backward()
    assert grads(sink, 7) == [WEIGHTS[:3].tolist()]
    assert not sink.lost


def test_a_tensor_that_is_written_in_place_but_is_no_view():
    x = leaf(6)
    y = x * 2
    sink = asked(y)
    y.relu_()
    weigh(y).backward()
    before = (x.detach() * 2).requires_grad_()
    (expected,) = torch.autograd.grad(weigh(before.relu()), before)
    assert grads(sink) == [expected.tolist()]
    assert not sink.lost


def test_uses_add_up():
    x = leaf(3)
    y = x * 2
    sink = asked(y)
    (weigh(y) + (3 * y).sum() + y[0]).backward()
    assert grads(sink) == [(WEIGHTS[:3] + 3 + torch.tensor([1, 0, 0])).tolist()]


def test_passes_are_told_apart():
    x = leaf(3)
    y = x * 2
    sink = asked(y)
    y.sum().backward(retain_graph=True)
    (2 * y).sum().backward(retain_graph=True)
    torch.autograd.grad((3 * y).sum(), x, retain_graph=True)
    torch.autograd.grad((4 * y).sum(), y)
    assert grads(sink) == [[1.0] * 3, [2.0] * 3, [3.0] * 3, [4.0] * 3]


def test_several_tensors_of_one_call_share_a_pass():
    x = leaf(2)
    a, b = x * 2, x * 3
    sink, owner = Sink(Tensor.clone), Owner("nethook.test")
    ask(a, 0, sink, owner, "here")
    ask(b, 1, sink, owner, "here")
    (a.sum() + 5 * b.sum()).backward()
    [arrived] = sink.passes.values()
    assert {key: grad.tolist() for key, grad in arrived.items()} == {0: [1.0, 1.0], 1: [5.0, 5.0]}


def test_double_backward():
    x = leaf(3)
    y = x**2
    sink = Sink(lambda grad: grad)
    ask(y, 0, sink, Owner("nethook.test"), "here")
    (first,) = torch.autograd.grad((y**2).sum(), x, create_graph=True)
    first.sum().backward()
    passes = [arrived[0] for arrived in sink.passes.values()]
    assert len(passes) == 2
    assert torch.equal(passes[0], 2 * y)
    assert passes[0].requires_grad
    # d/dy of sum(2y * 2x), with x held: 4x
    assert torch.allclose(passes[1], 4 * x)


def test_accumulation_over_micro_batches():
    model = nn.Linear(3, 2)
    with nethook.trace(model, "", grads=True) as tape:
        for scale in (1.0, 2.0):
            (model(torch.ones(1, 3)) * scale).sum().backward()
    assert [call.grad.tolist() for call in tape[""].calls] == [[[1.0, 1.0]], [[2.0, 2.0]]]


def test_what_nobody_waits_for_is_not_kept():
    x = leaf(3)
    y = x * 2
    kept = []
    sink = Sink(kept.append)
    ask(y, 0, sink, Owner("nethook.test"), "here")
    del sink
    y.sum().backward()
    assert kept == []


# -- leaves ----------------------------------------------------------------------------------------


def hooks_on(tensor: Tensor) -> int:
    return len(tensor._backward_hooks or ())


def test_a_leaf_hears_every_pass_inside_the_scope_and_nothing_is_left_after_it():
    x, owner = leaf(2), Owner("nethook.test")
    hooks = Attachment(owner)
    sink = asked(x, owner=owner)
    y = x * 2
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert grads(sink) == [[2.0, 2.0]] * 2
    hooks.remove()
    assert hooks_on(x) == 0
    assert owner.late == {}


def test_hooks_on_a_leaf_do_not_pile_up_and_a_later_call_does_not_reach_an_earlier_one():
    x, owner = leaf(2), Owner("nethook.test")
    sinks = []
    for turn in range(1, 5):
        sinks.append(asked(x, owner=owner))
        (x * turn).sum().backward()
        assert hooks_on(x) == 1
        assert len(owner.late) == 1
    assert [grads(sink) for sink in sinks] == [[[turn] * 2] for turn in (1.0, 2.0, 3.0, 4.0)]


def test_several_calls_before_one_backward_all_hear_it():
    x, owner = leaf(2), Owner("nethook.test")
    sinks = [asked(x, owner=owner) for _ in range(3)]
    assert hooks_on(x) == 3
    (x * 2).sum().backward()
    assert [grads(sink) for sink in sinks] == [[[2.0, 2.0]]] * 3


def test_a_later_scope_takes_no_hook_of_an_earlier_one_off():
    x, first, second = leaf(2), Owner("nethook.a"), Owner("nethook.b")
    sink = asked(x, owner=first)
    (x * 2).sum().backward()
    other = asked(x, owner=second)
    assert hooks_on(x) == 2
    (x * 3).sum().backward()
    assert grads(sink) == [[2.0, 2.0], [3.0, 3.0]]
    assert grads(other) == [[3.0, 3.0]]


def test_a_leaf_of_the_users_still_hears_a_backward_after_the_scope_once():
    x, owner = leaf(2), Owner("nethook.test")
    hooks = Attachment(owner)
    sink = asked(x, owner=owner)
    hooks.remove()
    assert hooks_on(x) == 1
    (x * 2).sum().backward()
    assert grads(sink) == [[2.0, 2.0]]
    assert hooks_on(x) == 0
    (x * 3).sum().backward()
    assert len(sink.passes) == 1


def test_a_parameter_hears_nothing_after_the_scope():
    x, owner = nn.Parameter(torch.ones(2)), Owner("nethook.test")
    hooks = Attachment(owner)
    sink = asked(x, owner=owner)
    hooks.remove()
    assert hooks_on(x) == 0
    (x * 2).sum().backward()
    assert sink.passes == {}


def test_hooks_on_a_leaf_go_with_the_one_who_asked():
    x, owner = leaf(2), Owner("nethook.test")
    theirs = x.register_hook(lambda _: None)
    sink = asked(x, owner=owner)
    assert hooks_on(x) == 2
    del sink
    assert hooks_on(x) == 1
    assert owner.late == {}
    theirs.remove()


def test_hooks_of_others_on_a_leaf_stay_where_they_are():
    x, owner, order = leaf(2), Owner("nethook.test"), []
    hooks = Attachment(owner)
    x.register_hook(lambda _: order.append("a"))
    sink = asked(x, owner=owner)
    x.register_hook(lambda _: order.append("b"))
    (x * 2).sum().backward()
    asked(x, owner=owner)
    hooks.remove()
    (x * 2).sum().backward()
    assert order == ["a", "b", "a", "b"]
    assert hooks_on(x) == 2
    assert len(sink.passes) == 1


def test_a_leaf_is_not_kept_alive():
    owner = Owner("nethook.test")
    x = leaf(2)
    sink = asked(x, owner=owner)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None
    del sink
    assert owner.late == {}


# -- views that are written in place ---------------------------------------------------------------

# from a tensor of 2 × 3 × 4, a view that shows all of it
WHOLE_VIEWS = {
    "view": lambda t: t.view(6, 4),
    "flatten": lambda t: t.flatten(1),
    "transpose": lambda t: t.transpose(0, 2),
    "permute": lambda t: t.permute(2, 0, 1),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "movedim of a view": lambda t: t.view(2, 12).t().view(3, 4, 2).movedim(0, 1),
    "itself": lambda t: t[:],
}
WRITES = {
    "relu_": lambda t: t.relu_(),
    "+=": lambda t: t.__iadd__(t.detach() * 2),
    "mul_": lambda t: t.mul_(3),
    "copy_": lambda t: t.copy_(t.detach().sin()),
    "part": lambda t: t[0].mul_(5) and t if t[0].numel() == 1 else (t[0].mul_(5), t)[1],
    "twice": lambda t: t.mul_(2).relu_(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", WHOLE_VIEWS)
@pytest.mark.parametrize("used_before", [False, True], ids=["", "used before"])
def test_a_view_of_all_of_a_tensor_written_in_place(view, write, used_before):
    x = leaf(2, 3, 4)
    made = WHOLE_VIEWS[view](x * 2)
    assert made._is_view()
    sink = asked(made)
    before = made.detach().clone().requires_grad_()  # the same, with no view and out of place
    losses = []
    for tensor, written in ((made, made), (before, before.clone())):
        early = weigh(tensor) if used_before else 0
        losses.append(weigh(WRITES[write](written).contiguous() ** 2) + early)
    (expected,) = torch.autograd.grad(losses[1], before)
    losses[0].backward()
    assert not sink.lost
    [arrived] = sink.passes.values()
    assert arrived[0].shape == expected.shape
    assert torch.allclose(arrived[0], expected, rtol=1e-12)


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_the_tensor_behind_the_view_may_be_laid_out_in_any_way(layout):
    x = leaf(1, 2, 3, 4)
    base = (x * 2).contiguous(memory_format=layout)
    view = base.transpose(2, 3)
    sink = asked(view)
    view.relu_()
    weigh(view.contiguous()).backward()
    before = (x.detach() * 2).transpose(2, 3).clone().requires_grad_()
    (expected,) = torch.autograd.grad(weigh(before.relu()), before)
    [arrived] = sink.passes.values()
    assert torch.equal(arrived[0], expected)


def test_the_tensor_behind_the_view_may_begin_anywhere_in_its_memory():
    x = leaf(6)
    base = x * 2
    base.data = torch.randn(10, dtype=torch.float64)[4:]
    view = base.view(2, 3).t()
    sink = asked(view)
    view.mul_(3)
    weigh(view).backward()
    assert grads(sink) == [(3 * WEIGHTS[:6]).view(3, 2).tolist()]


def test_a_view_that_is_not_written_answers_itself():
    x = leaf(2, 3)
    base = x * 2
    view = base.t()
    sink = asked(view)
    (weigh(view.contiguous()) + (100 * base).sum()).backward()
    assert grads(sink) == [WEIGHTS[:6].view(3, 2).tolist()]  # not what `base` gets besides


def test_each_pass_through_a_written_view_is_kept_once():
    x = leaf(4)
    view = (x * 2).view(2, 2)
    sink = asked(view)
    view.mul_(3)
    y = view.sum()
    y.backward(retain_graph=True)
    y.backward()
    assert grads(sink) == [[[3.0, 3.0], [3.0, 3.0]]] * 2


def test_double_backward_through_a_written_view():
    x = leaf(4)
    view = (x**2).view(2, 2)
    sink = Sink(lambda grad: grad)
    ask(view, 0, sink, Owner("nethook.test"), "here")
    view.mul_(3)
    torch.autograd.grad((view**2).sum(), x, create_graph=True)
    [arrived] = sink.passes.values()
    # d/dv of sum((3v)^2) = 18 v, and that depends on x
    assert torch.allclose(arrived[0], 18 * (x**2).view(2, 2))
    (second,) = torch.autograd.grad(arrived[0].sum(), x)
    assert torch.allclose(second, 36 * x)


def test_a_write_that_autograd_does_not_see_costs_no_gradient():
    x = leaf(4)
    view = (x * 2).view(2, 2)
    sink = asked(view)
    with torch.no_grad():
        view.mul_(3)
    weigh(view).backward()
    assert grads(sink) == [WEIGHTS[:4].view(2, 2).tolist()]


def test_nothing_arrives_at_a_written_view_of_an_output_that_nothing_depends_on():
    a, b = Two.apply(leaf(2, 2))
    view = b.view(4)
    sink = asked(view)
    b.detach().mul_(2)
    a.sum().backward()
    assert sink.passes == {}


def test_modes_of_the_users_do_not_see_how_the_gradient_of_a_written_view_is_found():
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    view = (leaf(4) * 2).view(2, 2)
    sink = Sink(lambda grad: 1)
    ask(view, 0, sink, Owner("nethook.test"), "here")
    loss = view.mul_(3).sum()
    with Names():
        loss.backward()
    assert seen  # it sees what backward itself does
    assert "aten.empty_strided.default" not in seen
    assert list(sink.passes.values()) == [{0: 1}]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_written_view_on_any_device_and_of_any_type(device, dtype):
    x = torch.ones(4, device=device, dtype=dtype, requires_grad=True)
    view = (x * 2).view(2, 2)
    sink = asked(view)
    view.mul_(3)
    view.abs().sum().backward()
    [arrived] = sink.passes.values()
    assert (arrived[0].device.type, arrived[0].dtype) == (device, dtype)
    assert arrived[0].shape == (2, 2)


def test_watching_for_writes_keeps_no_memory():
    tensor = torch.ones(1000, dtype=torch.float64)
    version = _Version(tensor)
    assert not version.changed
    assert version._alias.untyped_storage().nbytes() == 0
    tensor.mul_(2)
    assert version.changed


def test_nothing_arrives_where_nothing_flows():
    x = leaf(4)
    base = x * 2
    view = base.view(2, 2)
    sink = asked(view)
    base.detach().mul_(3)
    x.sum().backward()
    assert sink.passes == {}


# -- views whose gradient is lost when they are written, and that say so ---------------------------

# the view, what the module was given, what is written
LOST = {
    "of an input": lambda base: (base.flatten(), [base]),
    "of what an input is a view of": lambda base: (base.flatten(), [leaf(1), base.t()]),
    "a part": lambda base: (base[:1], []),
    "a diagonal": lambda base: (base.diagonal(), []),
    "real": lambda base: (torch.view_as_real(base), []),
    "conjugate": lambda base: (base.conj(), []),
    "negative": lambda base: (torch._neg_view(base), []),
    "overlapping": lambda base: (base.view(6).unfold(0, 3, 2), []),
}


@pytest.mark.parametrize("kind", LOST)
def test_a_view_whose_gradient_a_write_would_take_says_so(kind):
    x = leaf(2, 3)
    base = torch.complex(x, 2 * x) if kind in ("real", "conjugate") else x * 2
    view, given = LOST[kind](base)
    assert view._is_view()
    sink = asked(view, given)
    assert not sink.lost
    view.mul_(2)
    assert sink.lost
    view.abs().sum().backward()


@pytest.mark.parametrize("kind", [kind for kind in LOST if kind != "overlapping"])
def test_such_a_view_that_is_not_written_has_its_gradient(kind):
    x = leaf(2, 3)
    base = torch.complex(x, 2 * x) if kind in ("real", "conjugate") else x * 2
    view, given = LOST[kind](base)
    sink = asked(view, given)
    loss = view.abs().square().sum()
    (expected,) = torch.autograd.grad(loss, view, retain_graph=True)
    sink.passes.clear()
    loss.backward()
    assert not sink.lost
    [arrived] = sink.passes.values()
    assert torch.equal(arrived[0], expected)


def test_chunks_of_a_tensor_cannot_be_written_and_keep_their_gradients():
    x = leaf(2, 6)
    chunks = (x * 2).chunk(3, dim=1)
    sinks = [asked(chunk) for chunk in chunks]
    with pytest.raises(RuntimeError, match="multiple views"):
        chunks[0].mul_(2)
    torch.stack([weigh(chunk) for chunk in chunks]).sum().backward()
    assert [grads(sink) for sink in sinks] == [[WEIGHTS[:4].view(2, 2).tolist()]] * 3


def test_a_view_of_a_parameter_that_is_written_says_so():
    weight = nn.Parameter(torch.ones(2, 3))
    view = weight.t()
    sink = asked(view)
    (view * 2).sum().backward()
    assert grads(sink) == [[[2.0, 2.0]] * 3]
    assert not sink.lost
    view = weight.t()
    sink = asked(view)
    with torch.no_grad():
        view.mul_(2)  # torch makes a new graph node for the view, and drops the hook
    (view * 2).sum().backward()
    assert sink.passes == {}
    assert sink.lost


def test_a_gradient_that_came_before_the_write_is_not_lost():
    weight = nn.Parameter(torch.ones(2, 3))
    view = weight.t()
    sink = asked(view)
    view.sum().backward()
    torch.optim.SGD([weight], lr=0.1).step()
    assert not sink.lost
    assert grads(sink) == [[[1.0, 1.0]] * 3]


def test_a_part_of_a_gradient_is_not_taken_for_the_whole():
    x = leaf(2, 3)
    part = (x * 2)[:1]
    sink = asked(part)
    early = part.sum()
    part.mul_(2)
    (early + part.sum()).backward()
    assert sink.passes == {}
    assert sink.lost


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_view_of_a_nested_tensor_has_its_gradient(layout):
    rows = [leaf(2, 3), leaf(4, 3)]
    base = torch.nested.as_nested_tensor(rows, layout=layout) * 2
    view = base.transpose(1, 2)
    assert view._is_view()
    with quiet():
        sink = asked(view)
    view.transpose(1, 2).to_padded_tensor(0.0).sum().backward()
    assert not sink.lost
    [arrived] = sink.passes.values()
    assert [part.shape for part in arrived[0].unbind()] == [(3, 2), (3, 4)]


# -- through modules, as users see it --------------------------------------------------------------


class Written(nn.Module):
    """`body`, whose output is then written in place (or not: the oracle)."""

    def __init__(self, body: nn.Module, write) -> None:
        super().__init__()
        self.body = body
        self.write = write

    def forward(self, x: Tensor, out_of_place: bool = False) -> Tensor:
        y = self.body(x)
        y = y[0] if isinstance(y, tuple) else y
        self.made = y
        early = (3 * y).sum()  # what is used before the write counts as well
        written = self.write(y.clone() if out_of_place else y)
        return written.square().sum() + early


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


BODIES = {
    "linear 3-D": lambda: nn.Linear(4, 4),
    "linear 2-D": lambda: nn.Sequential(nn.Flatten(0, 1), nn.Linear(4, 4)),
    "linear 1-D": lambda: nn.Sequential(nn.Flatten(0, 2), nn.Linear(24, 4)),
    "lstm": lambda: nn.LSTM(4, 4),
    "lstm, batch first": lambda: nn.LSTM(4, 4, batch_first=True),
    "attention": SelfAttention,
    "unbatched convolution": lambda: nn.Conv1d(3, 5, 2),
    "gelu and flatten": lambda: nn.Sequential(nn.GELU(), nn.Linear(4, 4), nn.Flatten(0, 1)),
}
BODY_WRITES = {
    "relu": nn.ReLU(inplace=True),
    "+=": lambda y: y.__iadd__(torch.ones_like(y)),
    "*=": lambda y: y.__imul__(y.detach().cos()),
}


@pytest.mark.parametrize("write", BODY_WRITES)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.filterwarnings("ignore:TF32 acceleration:UserWarning")
def test_outputs_that_are_written_in_place(body, write):
    torch.manual_seed(1)
    model = Written(BODIES[body](), BODY_WRITES[write])
    x = torch.randn(2, 3, 4, requires_grad=True)
    if body == "unbatched convolution":
        x = torch.randn(3, 4, requires_grad=True)
    # The fused LSTM needs its output for the backward pass, and torch refuses to go on.
    with torch.backends.mkldnn.flags(enabled=False):
        (expected,) = torch.autograd.grad(model(x, out_of_place=True), model.made)
        with nethook.trace(model, "body", grads=True) as tape:
            model(x).backward()
    grad = tape["body"].grad
    grad = grad[0] if isinstance(grad, tuple) else grad
    assert torch.allclose(grad, expected, rtol=1e-5)


def test_a_flattened_input_that_is_written_in_place_says_that_its_gradient_is_lost():
    model = nn.Sequential(nn.Linear(4, 4), nn.Flatten(), nn.ReLU(inplace=True))
    with nethook.trace(model, grads=True) as tape:
        model(torch.ones(2, 3, 4)).sum().backward()
    with pytest.raises(NoGradientError, match="written in place"):
        tape["1"].grad
    assert tape["0"].grad.shape == (2, 3, 4)
    assert torch.equal(tape["2"].grad, torch.ones(2, 12))


def test_a_residual_that_is_added_in_place():
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor, out_of_place: bool = False):
            h = self.a(x)
            y = self.b(F.relu(h))
            self.made = [h, y]
            if out_of_place:
                return y + h
            y += h
            return y

    torch.manual_seed(0)
    model, x = Block(), torch.randn(2, 3, 4)
    expected = torch.autograd.grad(model(x, True).square().sum(), model.made)
    with nethook.trace(model, "a", "b", grads=True) as tape:
        model(x).square().sum().backward()
    assert torch.allclose(tape["a"].grad, expected[0])
    assert torch.allclose(tape["b"].grad, expected[1])


# -- nothing is kept alive -------------------------------------------------------------------------


class Zoo(nn.Module):
    """Leaves, parameters as outputs, views that are written, and plain layers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)
        self.same = nn.Identity()
        self.flat = nn.Flatten()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.same(x)
        y = self.act(self.fc(x))
        return self.flat(y) * self.same(self.scale)


OPTIONS = {
    "everything": {},
    "copied": {"copy": True},
    "referenced": {"copy": False},
    "in the graph": {"detach": False},
    "in the graph, copied": {"detach": False, "copy": True},
    "last call": {"calls": "last"},
    "transformed": {"transform": lambda t: t.sum()},
}


def one_turn(model: nn.Module, x: Tensor, create_graph: bool, **options) -> object:
    with nethook.trace(
        model, inputs=True, grads=True, input_grads=True, param_grads=True, **options
    ) as tape:
        loss = model(x).square().sum()
        loss.backward(create_graph=create_graph)
    model.zero_grad()
    x.grad = None
    return tape


@pytest.mark.parametrize("create_graph", [False, True], ids=["", "create_graph"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_hundreds_of_traces_leave_nothing_alive(options, create_graph):
    model, x = Zoo(), torch.ones(2, 3, 4, requires_grad=True)

    def turn() -> object:
        return one_turn(model, x, create_graph, **OPTIONS[options])

    turn()
    with counted() as count:
        turn()
        tensors, objects = count()
        for _ in range(100):
            turn()
        assert count()[0] == tensors
        assert count()[1] <= objects + 20
    assert len(nethook.audit(model)) == 0
    assert hooks_on(x) == 0


def test_hundreds_of_forwards_in_one_scope_leave_nothing_alive_after_clear():
    model, x = Zoo(), torch.ones(2, 3, 4, requires_grad=True)
    everything = {"inputs": True, "grads": True, "input_grads": True, "param_grads": True}
    counts = []
    with nethook.trace(model, **everything) as tape, counted() as count:
        for turn in range(201):
            model(x).sum().backward()
            tape.clear()
            model.zero_grad()
            x.grad = None
            if turn % 100 == 0:
                counts.append(count())
        assert hooks_on(x) == 0
        assert hooks_on(model.scale) == 1  # of param_grads
    assert counts[0][0] == counts[-1][0]
    assert counts[-1][1] <= counts[0][1] + 20


def test_a_graph_is_freed_with_its_tensors_although_the_tape_lives():
    model, x = Zoo(), torch.ones(2, 3, 4, requires_grad=True)

    class Saved:  # what the graph keeps for its backward pass: alive as long as its nodes are
        def __init__(self, tensor: Tensor) -> None:
            self.tensor = tensor

    saved: list[weakref.ref[Saved]] = []

    def pack(tensor: Tensor) -> Saved:
        saved.append(weakref.ref(box := Saved(tensor.detach())))
        return box

    with (
        nethook.trace(model, grads=True, input_grads=True) as tape,
        torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor),
    ):
        y = model(x)
    assert len(saved) > 2
    assert all(each() is not None for each in saved)
    y.sum().backward(retain_graph=True)
    del y
    gc.collect()
    assert all(each() is None for each in saved)
    assert tape["fc"].grad.shape == (2, 3, 4)


def test_a_dropped_tape_frees_everything_it_kept():
    model, x = Zoo(), torch.ones(2, 3, 4, requires_grad=True)
    with counted() as count:
        tape = one_turn(model, x, create_graph=False, detach=False)
        assert count()[0] > 10
        del tape
        assert count()[0] == 0


def test_a_model_is_freed_although_a_tape_and_a_graph_of_it_live():
    model, x = Zoo(), torch.ones(2, 3, 4, requires_grad=True)
    with nethook.trace(model, grads=True) as tape:
        y = model(x)
    gone = [weakref.ref(model), weakref.ref(model.fc)]
    del model
    gc.collect()
    assert [each() for each in gone] == [None, None]
    y.sum().backward()
    assert tape["fc"].grad is not None
