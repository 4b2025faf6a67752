"""`trace`: what it records, in the ways people call a model and a backward pass."""

import gc

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.errors import NoSuchSiteError, OptionError, OverwrittenError, ScopeError


class Residual(nn.Module):
    """Calls one activation twice, adds in place, and has a head that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 6), nn.Linear(6, 6)
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Linear(6, 2)
        self.unused = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.act(self.fc1(x))
        h = self.act(self.fc2(h)) + h
        return self.head(h)


@pytest.fixture
def model() -> Residual:
    torch.manual_seed(0)
    return Residual()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1))


def by_hand(model: Residual, x: torch.Tensor) -> dict[str, list[torch.Tensor]]:
    """The same forward with nothing in place, so that every value can be asked for its gradient."""
    a = F.linear(x, model.fc1.weight, model.fc1.bias)
    b = F.relu(a)
    c = F.linear(b, model.fc2.weight, model.fc2.bias)
    d = F.relu(c)
    e = F.linear(d + b, model.head.weight, model.head.bias)
    return {"fc1": [a], "fc2": [c], "act": [b, d], "head": [e]}


def test_values_and_gradients_equal_those_of_the_network_written_out_by_hand(model, x):
    with nethook.trace(model, inputs=True, grads=True) as tape:
        model(x).square().sum().backward()
    values = by_hand(model, x)
    names = [(name, index) for name, calls in values.items() for index in range(len(calls))]
    grads = torch.autograd.grad(
        values["head"][0].square().sum(), [values[name][index] for name, index in names]
    )
    for (name, index), grad in zip(names, grads, strict=True):
        call = tape[name].calls[index]
        torch.testing.assert_close(call.output, values[name][index].detach())
        torch.testing.assert_close(call.grad, grad)
    torch.testing.assert_close(tape["fc1"].input, x)
    torch.testing.assert_close(tape["act"].calls[0].input, values["fc1"][0].detach())


def test_without_patterns_every_leaf_is_traced_and_nothing_else(model):
    with nethook.trace(nn.Sequential(model, nn.Identity())) as tape:
        pass
    assert list(tape) == ["0.fc1", "0.fc2", "0.act", "0.head", "0.unused", "1"]


def test_a_model_that_is_a_leaf_is_traced_itself(x):
    with nethook.trace(nn.Linear(4, 2)) as tape:
        pass
    assert list(tape) == [""]


def test_input_gradients_are_those_of_the_tensors_that_went_in(model, x):
    x.requires_grad_()
    with nethook.trace(model, "fc1", "", input_grads=True) as tape:
        model(x).sum().backward()
    assert torch.equal(tape["fc1"].input_grads[0], x.grad)
    assert torch.equal(tape[""].input_grads[0], x.grad)


def test_an_input_gradient_counts_every_use_of_the_tensor(model, x):
    with nethook.trace(model, "fc2", input_grads=True) as tape:
        model(x).sum().backward()
    h = F.relu(model.fc1(x)).detach().requires_grad_()
    model.head(F.relu(model.fc2(h)) + h).sum().backward()
    torch.testing.assert_close(tape["fc2"].input_grads[0], h.grad)


def test_parameter_gradients_are_what_each_backward_pass_adds(model, x):
    with nethook.trace(model, "fc1", param_grads=True) as tape:
        model(x).sum().backward()
        first = model.fc1.weight.grad.clone()
        (2 * model(x).sum()).backward()
    assert list(tape.params) == ["fc1.weight", "fc1.bias"]
    assert torch.equal(tape.params["fc1.weight"].grads[0], first)
    torch.testing.assert_close(tape.params["fc1.weight"].grads[1], 2 * first)


def test_a_container_stands_for_all_parameters_below_it(model):
    with nethook.trace(nn.Sequential(model), "0", param_grads=True) as tape:
        pass
    assert "0.fc1.weight" in tape.params
    assert len(tape.params) == len(list(model.parameters()))


def test_without_patterns_all_parameters_are_asked_for():
    model = nn.MultiheadAttention(4, 2)  # keeps parameters of its own beside a child
    with nethook.trace(model, param_grads=True) as tape:
        pass
    assert list(tape.params) == [name for name, _ in model.named_parameters()]


def test_gradients_arrive_also_when_backward_runs_after_the_scope(model, x):
    with nethook.trace(model, grads=True) as tape:
        loss = model(x).sum()
    loss.backward()
    assert tape["fc2"].grad.shape == (3, 5, 6)
    assert not nethook.audit(model)


def test_several_forwards_before_one_backward_keep_their_calls_apart(model, x):
    with nethook.trace(model, "fc1", grads=True) as tape:
        (model(x).sum() + 3 * model(x).sum()).backward()
    first, second = tape["fc1"].calls
    assert (first.forward, second.forward) == (0, 1)
    torch.testing.assert_close(second.grad, 3 * first.grad)


def test_accumulation_gives_each_micro_batch_its_own_gradient(model, x):
    with nethook.trace(model, "fc1", grads=True, param_grads=True) as tape:
        for part in x:
            model(part).sum().backward()
    assert len(tape["fc1"].calls) == 3
    summed = torch.stack(tape.params["fc1.weight"].grads).sum(0)
    torch.testing.assert_close(summed, model.fc1.weight.grad)


def test_double_backward_records_both_passes(model, x):
    x.requires_grad_()
    with nethook.trace(model, "fc1", grads=True) as tape:
        out = model(x).square().sum()
        (slope,) = torch.autograd.grad(out, x, create_graph=True)
        slope.square().sum().backward()
    assert len(tape["fc1"].grads) == 2
    a = model.fc1(x)
    values = F.relu(a)
    out = model.head(F.relu(model.fc2(values)) + values).square().sum()
    torch.testing.assert_close(tape["fc1"].grads[0], torch.autograd.grad(out, a)[0])


def test_autograd_grad_feeds_the_tape_as_backward_does(model, x):
    with nethook.trace(model, "fc2", grads=True) as tape:
        torch.autograd.grad(model(x).sum(), model.fc1.weight)
    model(x).sum().backward()
    assert tape["fc2"].grad.shape == (3, 5, 6)


def test_a_kept_graph_can_be_differentiated_again(model, x):
    with nethook.trace(model, "head", detach=False) as tape:
        loss = model(x).square().sum()
    out = tape["head"].output
    (grad,) = torch.autograd.grad(loss, out)
    torch.testing.assert_close(grad, 2 * out.detach())


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_without_gradient_values_survive_in_place_neighbours(model, x, context):
    with context(), nethook.trace(model) as tape:
        model(x)
    expected = F.linear(x, model.fc1.weight, model.fc1.bias)
    torch.testing.assert_close(tape["fc1"].output.clone(), expected.detach())
    assert tape["fc1"].output.min() < 0  # the rectifier wrote zeros over the original


def test_under_autocast_the_type_is_that_of_the_run(model, x):
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        nethook.trace(model, "fc1", grads=True) as tape,
    ):
        model(x).float().sum().backward()
    assert tape["fc1"].output.dtype == tape["fc1"].grad.dtype == torch.bfloat16


def test_on_the_meta_device_shapes_are_recorded(model):
    with nethook.trace(model.to("meta"), grads=True) as tape:
        model(torch.empty(2, 3, 4, device="meta")).sum().backward()
    assert tape["fc1"].grad.device.type == "meta"
    assert tape["head"].output.shape == (2, 3, 2)


def test_an_exception_inside_the_model_passes_through_and_leaves_what_was_seen(model, x):
    model.fc2.forward = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError), nethook.trace(model, inputs=True) as tape:
        model(x)
    assert len(nethook.audit(model).ours) == 0
    assert tape["fc1"].output.shape == (3, 5, 6)
    assert tape["fc2"].input.shape == (3, 5, 6)  # what the call that failed was given
    with pytest.raises(nethook.errors.NotRunError, match="raised an exception before it returned"):
        tape["fc2"].output


def test_a_forward_that_failed_does_not_spoil_the_next_one(model, x):
    with nethook.trace(model, "fc1", "fc2", inputs=True) as tape:
        with pytest.raises(RuntimeError):
            model(x[..., :2])  # fc1 wants four features
        model(x)
    failed, right = tape["fc1"].calls
    assert (failed.forward, right.forward) == (0, 1)
    assert failed.input.shape == (3, 5, 2)
    assert right.output.shape == (3, 5, 6)
    assert tape["fc2"].forward == 1


def test_keyword_arguments_are_inputs_too():
    class Inner(nn.Module):
        def forward(self, *, value, mask=None):
            return value * 2 if mask is None else value * mask

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(value=x, mask=x > 0)

    model, x = Outer(), torch.randn(3, requires_grad=True)
    with nethook.trace(model, "inner", inputs=True, input_grads=True) as tape:
        model(x).sum().backward()
    record = tape["inner"]
    assert record.args == ()
    assert set(record.kwargs) == {"value", "mask"}
    assert torch.equal(record.input, x)
    assert torch.equal(record.input_grads["value"], x.grad)
    assert record.input_grads["mask"] is None


def test_inputs_are_those_before_the_call(x):
    model = nn.Sequential(nn.ReLU(inplace=True))
    given = x.clone()
    with nethook.trace(model, inputs=True) as tape:
        model(given)
    assert torch.equal(tape["0"].input, x)
    assert torch.equal(given, x.relu())


def test_a_child_that_is_called_on_its_own_belongs_to_no_forward(model, x):
    with nethook.trace(model, "fc1") as tape:
        model.fc1(x)
        model(x)
    assert [call.forward for call in tape["fc1"].calls] == [None, 0]
    assert tape.forwards == 1


def test_a_model_that_calls_itself_is_one_forward():
    class Countdown(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(2, 2)

        def forward(self, x, n=2):
            x = self.step(x)
            return x if n == 0 else self(x, n - 1)

    model = Countdown()
    with nethook.trace(model, "", "step", inputs=True) as tape:
        model(torch.randn(1, 2))
        model(torch.randn(1, 2), 0)
    assert tape.forwards == 2
    assert [call.forward for call in tape["step"].calls] == [0, 0, 0, 1]
    # The innermost call returns first; each has the input it was called with.
    assert [call.args[1:] for call in tape[""].calls] == [(0,), (1,), (), (0,)]


def test_scopes_nest_and_each_has_its_own_tape(model, x):
    with nethook.trace(model, "fc1") as outer:
        model(x)
        with nethook.trace(model, "fc1", "fc2") as inner:
            model(x)
    assert (outer["fc1"].total, inner["fc1"].total) == (2, 1)
    assert not nethook.audit(model)


def test_scopes_may_be_left_in_any_order(model, x):
    first, second = nethook.trace(model, "fc1"), nethook.trace(model, "fc1")
    one, two = first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    model(x)
    second.__exit__(None, None, None)
    assert (one["fc1"].total, two["fc1"].total) == (0, 1)
    assert not nethook.audit(model)


def test_a_scope_that_is_forgotten_takes_its_hooks_along(model):
    scope = nethook.trace(model, inputs=True, grads=True, param_grads=True, stop=True)
    scope.__enter__()
    assert len(nethook.audit(model).ours) > 0
    del scope
    assert not nethook.audit(model)


def test_a_pattern_that_matches_nothing_attaches_nothing(model):
    with pytest.raises(NoSuchSiteError, match="fc3"), nethook.trace(model, "fc1", "fc3"):
        pass
    assert not nethook.audit(model)


def test_attaching_that_fails_half_way_leaves_nothing(model):
    class Refuses(dict):
        def __setitem__(self, key, value):
            raise RuntimeError("no hooks here")

    model.head._forward_hooks = Refuses()
    with pytest.raises(RuntimeError, match="no hooks here"), nethook.trace(model):
        pass
    assert not nethook.audit(model)


def test_a_scope_is_entered_once(model):
    scope = nethook.trace(model)
    with scope:
        pass
    with pytest.raises(ScopeError, match=r"call nethook.trace\(...\) again"):
        scope.__enter__()
    with pytest.raises(ScopeError, match="was not entered"):
        nethook.trace(model).__exit__(None, None, None)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"calls": 0}, "1 or more"),
        ({"calls": True}, "1 or more"),
        ({"calls": "first"}, '"all", "last"'),
        ({"copy": "yes"}, '`copy` must be "lazy", "now" or "reference"; got \'yes\'.'),
        ({"copy": []}, "`copy` must be"),
        ({"dtype": torch.int64}, "floating-point"),
        ({"transform": 3}, "a function of one tensor"),
    ],
)
def test_options_are_checked_before_anything_is_attached(model, option, message):
    with pytest.raises(OptionError, match=message):
        nethook.trace(model, **option)


def test_what_is_not_a_module_is_refused(model):
    with pytest.raises(TypeError, match=r"`model` must be an nn.Module; got function"):
        nethook.trace(lambda x: x).__enter__()


def test_a_compiled_model_runs_eagerly_in_the_scope_and_compiled_after_it(x):
    torch.compiler.reset()  # of one function torch compiles only so many variants in a process
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    runs = []

    def backend(graph, _):
        runs.append(graph)
        return graph.forward

    compiled = torch.compile(model, backend=backend)
    expected = compiled(x)
    with nethook.trace(compiled, grads=True) as tape:
        compiled(x).sum().backward()
    assert torch.equal(tape["1"].output, expected.detach())
    assert torch.equal(compiled(x), expected)
    assert len(runs) == 1  # nothing was compiled anew


def test_forward_hooks_of_others_see_and_do_what_they_did(model, x):
    seen = []
    model.fc1.register_forward_hook(lambda _, __, out: seen.append(out) or out + 1)
    with nethook.trace(model, "fc1") as tape:
        model(x)
    # Entered later, so it sees what the earlier hook made of the output.
    assert torch.equal(tape["fc1"].output, (seen[0] + 1).detach())


def test_a_leaf_that_went_in_has_one_gradient_a_call_over_many_steps():
    model, x = nn.Linear(2, 2), torch.randn(1, 2, requires_grad=True)
    with nethook.trace(model, input_grads=True) as tape:
        for step in range(3):
            (model(x).sum() * (step + 1)).backward()
    for step, call in enumerate(tape[""].calls):
        torch.testing.assert_close(call.input_grads[0], model.weight.sum(0, True) * (step + 1))
    assert not x._backward_hooks


def test_what_is_done_with_a_leaf_after_the_scope_is_not_recorded():
    model, x = nn.Linear(2, 2), torch.randn(1, 2, requires_grad=True)
    with nethook.trace(model, input_grads=True) as tape:
        model(x).sum().backward()
    model(x).sum().backward()
    assert torch.equal(tape[""].input_grads[0] * 2, x.grad)


def test_a_leaf_gets_its_gradient_after_the_scope_once():
    model, x = nn.Linear(2, 2), torch.randn(1, 2, requires_grad=True)
    with nethook.trace(model, input_grads=True) as tape:
        loss = model(x).sum()
    loss.backward()
    model(x).sum().backward()
    assert torch.equal(tape[""].input_grads[0] * 2, x.grad)
    assert not x._backward_hooks


def test_a_leaf_is_left_alone_once_the_tape_is_gone():
    model, x = nn.Linear(2, 2), torch.randn(1, 2, requires_grad=True)
    with nethook.trace(model, input_grads=True) as tape:
        model(x)
    assert x._backward_hooks
    del tape
    gc.collect()
    assert not x._backward_hooks


def test_a_parameter_that_is_an_output_carries_no_hook_after_the_scope():
    class Gives(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self):
            return self.weight

    model = Gives()
    with nethook.trace(model, grads=True) as tape:
        (model() * 3).sum().backward()
        model()
    assert torch.equal(tape[""].calls[0].grad, torch.full((2,), 3.0))
    assert not nethook.audit(model)


@pytest.mark.parametrize(("word", "older"), [("lazy", None), ("now", True), ("reference", False)])
def test_the_three_ways_to_keep_a_tensor_have_words(word, older):
    """What is written in place after it was recorded shows which one it is."""
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))
    x = torch.randn(2, 3)
    found = []
    for copy in (word, older):
        with torch.no_grad(), nethook.trace(model, "0", copy=copy) as tape:
            model(x)
        try:
            found.append(tape["0"].output.tolist())
        except OverwrittenError:
            found.append("overwritten")
    assert found[0] == found[1]
    assert (found[0] == "overwritten") == (word == "reference")
