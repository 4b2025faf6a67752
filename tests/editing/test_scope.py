"""`edit`: what is changed, what is left alone, and what is refused."""

import functools
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook import edits
from nethook.errors import EditError, InPlaceEditError, NoSuchSiteError, ScopeError, UnfiredError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 6), nn.Linear(6, 3)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def x():
    return torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1))


def double(value):
    return value * 2


class Doubler:
    def double(self, value):
        return value * 2


@pytest.mark.parametrize(
    "function",
    [
        double,
        lambda v: v * 2,
        functools.partial(torch.mul, other=2),
        Doubler().double,
        edits.scale(2),
        lambda v, site: v * (2 if site == "fc1" else 0),
        lambda v, where: v * (2 if where == "fc1" else 0),
        lambda v, *, site: v * (2 if site == "fc1" else 0),
        lambda v, scale=2: v * scale,
        lambda *values, **more: values[0] * 2,
    ],
)
def test_any_callable_is_an_edit(model, x, function):
    with nethook.edit(model, outputs={"fc1": function}):
        changed = model(x)
    assert torch.equal(changed, model.fc2(F.relu(model.fc1(x) * 2)))


@pytest.mark.parametrize("function", [torch.tanh, nn.Tanh()])
def test_builtins_and_modules_are_edits(model, x, function):
    with nethook.edit(model, outputs={"fc1": function}):
        changed = model(x)
    assert torch.equal(changed, model.fc2(F.relu(torch.tanh(model.fc1(x)))))


def test_a_function_that_wants_more_is_refused_when_it_is_attached(model):
    with pytest.raises(
        EditError, match=r"outputs\['fc1'\] must take the value.*requires 3 arguments"
    ):
        nethook.edit(model, outputs={"fc1": lambda a, b, c: a})


def test_none_means_no_change(model, x):
    with nethook.edit(model, outputs={"fc1": lambda v: None}) as scope:
        changed = model(x)
    assert torch.equal(changed, model(x))
    assert scope.firings == {"outputs['fc1']": 1}


def test_several_edits_apply_in_order(model, x):
    with nethook.edit(model, outputs={"fc2": [edits.add(1), edits.scale(2)], "*2": edits.add(3)}):
        changed = model(x)
    torch.testing.assert_close(changed, (model(x) + 1) * 2 + 3)


def test_what_is_attached_later_sees_what_was_attached_earlier(model, x):
    with (
        nethook.edit(model, outputs={"fc2": edits.add(1)}),
        nethook.trace(model, "fc2") as tape,
        nethook.edit(model, outputs={"fc2": edits.scale(2)}),
    ):
        changed = model(x)
    plain = model(x).detach()
    torch.testing.assert_close(tape["fc2"].output, plain + 1)
    torch.testing.assert_close(changed.detach(), (plain + 1) * 2)


def test_inputs_are_edited_before_the_call(model, x):
    with nethook.edit(model, inputs={"fc1": edits.scale(2)}):
        changed = model(x)
    assert torch.equal(changed, model(x * 2))


class Masked(nn.Module):
    def forward(self, value, *, mask, scale=1):
        return value * mask * scale


def test_inputs_are_edited_by_path():
    model, ones = Masked(), torch.ones(2)
    with nethook.edit(model, inputs={"": {"[0]": edits.add(1), '["mask"]': edits.scale(3)}}):
        assert torch.equal(model(ones, mask=ones), ones * 6)
    with pytest.raises(EditError, match=r"was called with \[0\], \[\"mask\"\]. Name one"):
        with nethook.edit(model, inputs={"": edits.zero()}):
            model(ones, mask=ones)
    with pytest.raises(EditError, match=r"found no such part at ''"):
        with nethook.edit(model, inputs={"": {"[3]": edits.zero()}}):
            model(ones, mask=ones)


def test_an_only_keyword_argument_is_edited_without_a_path():
    class ByName(nn.Module):
        def forward(self, *, value):
            return value

    model = ByName()
    with nethook.edit(model, inputs={"": edits.add(1)}):
        assert model(value=torch.zeros(1)).item() == 1


def test_nested_outputs_are_edited_by_path_and_keep_their_type():
    model, x = nn.LSTM(2, 3), torch.randn(4, 2)
    with nethook.edit(model, outputs={"": {"[0]": edits.zero(), "[1][1]": edits.add(1)}}):
        output, (hidden, cell) = model(x)
    _plain, (plain_hidden, plain_cell) = model(x)
    assert not output.any()
    assert torch.equal(hidden, plain_hidden)
    assert torch.equal(cell, plain_cell + 1)


def test_an_edit_of_one_tensor_at_a_nested_output_names_the_paths():
    model = nn.LSTM(2, 3)
    with pytest.raises(EditError, match=r"tensors at: '\[0\]', '\[1\]\[0\]', '\[1\]\[1\]'"):
        with nethook.edit(model, outputs={"": edits.zero()}):
            model(torch.randn(4, 2))
    assert not nethook.audit(model)


def test_gradients_are_edited_where_the_output_is_written_in_place_afterwards(model, x):
    with nethook.edit(model, grads={"fc1": edits.scale(3)}):
        model(x).sum().backward()
    edited = model.fc1.weight.grad
    model.zero_grad()
    a = model.fc1(x)
    out = model.fc2(F.relu(a)).sum()
    (grad,) = torch.autograd.grad(out, a, retain_graph=True)
    a.backward(grad * 3)
    torch.testing.assert_close(edited, model.fc1.weight.grad)


def test_a_gradient_edit_of_a_branch_leaves_the_other_branch_alone():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.branch = nn.Identity()

        def forward(self, x):
            return x + self.branch(x)

    model, x = Skip(), torch.ones(2, requires_grad=True)
    with nethook.edit(model, grads={"branch": edits.scale(100)}):
        model(x * 1).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 101.0))


def test_an_input_gradient_edit_changes_what_the_module_passes_back():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return x + self.fc(x)

    model, x = Skip(), torch.ones(1, 2, requires_grad=True)
    with nethook.edit(model, input_grads={"fc": edits.zero()}):
        model(x * 1).sum().backward()
    assert torch.equal(x.grad, torch.ones(1, 2))  # only the skip is left
    assert model.fc.weight.grad is not None


def test_gradients_of_parameters_are_edited(model, x):
    with nethook.edit(model, param_grads={"fc*.bias": edits.zero(), "fc1.weight": torch.neg}):
        model(x).sum().backward()
    edited = model.fc1.weight.grad
    assert not model.fc1.bias.grad.any()
    model.zero_grad()
    model(x).sum().backward()
    assert torch.equal(edited, -model.fc1.weight.grad)


def test_a_gradient_edit_that_writes_in_place_reaches_nobody_else():
    x = torch.ones(2, requires_grad=True)
    model = nn.Identity()
    with nethook.edit(model, grads={"": lambda g: g.mul_(100)}):
        h = x * 1
        (h + model(h)).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 101.0))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda g: g[:1], r"shape \(1, 5, 6\).*must have shape \(2, 5, 6\)"),
        (lambda g: g.double(), r"torch.float64.*must have"),
        (lambda g: 3, "returned int for the gradient at 'fc1'"),
    ],
)
def test_a_gradient_of_the_wrong_kind_is_refused_with_the_address(model, x, function, message):
    with pytest.raises(EditError, match=message), nethook.edit(model, grads={"fc1": function}):
        model(x).sum().backward()


@pytest.mark.parametrize("where", ["outputs", "grads", "param_grads"])
def test_writing_in_place_and_returning_none_is_refused(model, x, where):
    def wrong(value):
        with torch.no_grad():
            value.mul_(2)

    pattern = "fc1.weight" if where == "param_grads" else "fc1"
    with pytest.raises(InPlaceEditError, match="Return the new value instead"):
        with nethook.edit(model, **{where: {pattern: wrong}}):
            model(x).sum().backward()
    assert not nethook.audit(model)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (None, [0, 0, 0, 0]),
        (1, [1, 0, 1, 1]),
        (slice(2), [0, 0, 1, 1]),
        (slice(1, None, 2), [1, 0, 1, 0]),
    ],
)
def test_edits_are_limited_by_call(calls, expected):
    model = nn.Identity()
    with nethook.edit(model, outputs={"": edits.zero(calls=calls)}):
        seen = [model(torch.ones(1)).item() for _ in range(4)]
    assert seen == expected


def test_gradient_edits_are_limited_by_the_call_they_belong_to():
    model, x = nn.Linear(1, 1), torch.ones(1, 1)
    with nethook.edit(model, grads={"": edits.zero(calls=0)}):
        model(x).backward()
        assert model.weight.grad.item() == 0
        model(x).backward()
        assert model.weight.grad.item() == 1


def test_an_edit_that_never_applied_is_an_error_that_says_why(model, x):
    with (
        pytest.raises(UnfiredError, match=r"outputs\['fc2'\] was never applied: 'fc2' did not run"),
        nethook.edit(model, outputs={"fc2": double}),
    ):
        model.fc1(x)
    with pytest.raises(UnfiredError, match=r"call backward\(\) inside it"):
        with nethook.edit(model, grads={"fc2": double}):
            model(x)
    for without in (torch.no_grad(), torch.inference_mode()):
        with pytest.raises(
            UnfiredError, match=r"at 'fc2' did not require a gradient: they were computed under"
        ):
            with without, nethook.edit(model, grads={"fc2": double}):
                model(x)
    with pytest.raises(UnfiredError, match=r"ran 1 time, and calls=5 means none"):
        with nethook.edit(model, outputs={"fc2": edits.zero(calls=5)}):
            model(x)


def test_without_strict_it_is_a_warning(model):
    with pytest.warns(UserWarning, match="was never applied"):
        with nethook.edit(model, outputs={"fc2": double}, strict=False):
            pass


def test_an_exception_in_the_block_is_not_hidden_by_an_unfired_edit(model):
    with pytest.raises(KeyError), nethook.edit(model, outputs={"fc2": double}):
        raise KeyError
    assert not nethook.audit(model)


def test_edits_end_with_their_scope(model, x):
    plain = model(x)
    with nethook.edit(model, outputs={"fc1": double}, grads={"fc2": edits.scale(7)}, strict=False):
        with warnings.catch_warnings():
            loss = model(x).sum()
    assert torch.equal(model(x), plain)
    assert not nethook.audit(model)
    loss.backward()  # after the scope: the gradient edit is inert
    assert torch.equal(model.fc2.bias.grad, torch.full((3,), 10.0))


test_edits_end_with_their_scope = pytest.mark.filterwarnings("ignore:the edit at")(
    test_edits_end_with_their_scope
)


def test_attach_and_remove_give_a_handle(model, x):
    scope = nethook.edit(model, outputs={"fc1": edits.zero()}).attach()
    with pytest.raises(ScopeError, match="attached already"):
        scope.attach()
    changed = model(x)
    scope.remove()
    scope.remove()
    assert not torch.equal(changed, model(x))
    assert "fc1" in repr(scope)
    assert scope.firings == {"outputs['fc1']": 1}


def test_a_pattern_that_matches_nothing_attaches_nothing(model):
    with pytest.raises(NoSuchSiteError, match="fc3"):
        nethook.edit(model, outputs={"fc1": double, "fc3": double}).attach()
    assert not nethook.audit(model)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing to edit"),
        ({"outputs": "fc1"}, "a mapping from a pattern to an edit"),
        ({"outputs": {"fc1": 3}}, r"got int at 'fc1'. .*edits.replace\(value\)"),
        (
            {"outputs": {"fc1": edits.zero}},
            r"got the class edits.zero at .*Call it: edits.zero\(...\)",
        ),
        ({"outputs": {"fc1": {"oops": double}}}, "not a path inside a value"),
    ],
)
def test_arguments_are_checked_before_anything_is_attached(model, given, message):
    with pytest.raises(ValueError, match=message):
        nethook.edit(model, **given)


def test_a_compiled_model_is_edited(x):
    model = nn.Sequential(nn.Linear(4, 3))
    compiled = torch.compile(model, backend="eager")
    plain = compiled(x)
    with nethook.edit(compiled, outputs={"0": edits.scale(2)}):
        changed = compiled(x)
    torch.testing.assert_close(changed, plain * 2)
    assert torch.equal(compiled(x), plain)


@pytest.mark.parametrize("reentrant", [False, True])
def test_under_checkpointing_an_edit_applies_in_both_passes(model, x, reentrant):
    from torch.utils.checkpoint import checkpoint

    x.requires_grad_()
    with nethook.edit(
        model, outputs={"act": edits.scale(2)}, grads={"fc1": edits.scale(3)}
    ) as scope:
        checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    grad, weight = x.grad, model.fc1.weight.grad
    x.grad = None
    model.zero_grad()
    a = model.fc1(x)
    b = (F.relu(a) * 2).detach().requires_grad_()
    model.fc2(b).sum().backward()
    a.backward(b.grad * 2 * (a > 0) * 3)
    torch.testing.assert_close(grad, x.grad)
    torch.testing.assert_close(weight, model.fc1.weight.grad)
    assert scope.firings == {"outputs['act']": 1, "grads['fc1']": 1}


def test_a_limit_by_call_is_refused_under_checkpointing(model, x):
    from torch.utils.checkpoint import checkpoint

    x.requires_grad_()
    with pytest.raises(EditError, match="which call that is cannot be told"):
        with nethook.edit(model, outputs={"act": edits.scale(2, calls=0)}):
            checkpoint(model, x, use_reentrant=False).sum().backward()


def test_tensors_inside_an_object_have_no_address():
    class Out:
        def __init__(self, value):
            self.value = value

    class Holds(nn.Module):
        def forward(self, x):
            return Out(x)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.holds = Holds()

        def forward(self, x):
            return self.holds(x).value

    model = Model()
    by_path = {"holds": {".value": edits.zero()}}
    with (
        pytest.raises(
            EditError, match=r"no such part .* and not into a Out\. Take the whole object"
        ),
        nethook.edit(model, outputs=by_path),
    ):
        model(torch.ones(2))
    with (
        pytest.raises(
            EditError, match=r"returned a Out, in which no tensor has an address\. Write"
        ),
        nethook.edit(model, outputs={"holds": edits.zero()}),
    ):
        model(torch.ones(2))
    with nethook.edit(model, outputs={"holds": lambda out: Out(out.value * 2)}):
        assert model(torch.ones(2)).tolist() == [2, 2]
