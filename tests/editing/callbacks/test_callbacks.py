"""`Callbacks`: functions at any site, penalties, and the ready-made ones."""

import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import nethook
from nethook.errors import EditError, NoSuchSiteError, NotFiniteError, ScopeError


def test_functions_observe_in_the_order_of_the_run(model, cb, x):
    seen = []
    cb.before("fc1")(lambda inputs, site: seen.append(("before", site, len(inputs))))
    cb.after("fc*")(lambda output, site: seen.append(("after", site, tuple(output.shape))))
    cb.on_grad("fc1")(lambda grad, site: seen.append(("grad", site, tuple(grad.shape))))
    cb.on_param_grad("fc1.bias")(lambda grad, site: seen.append(("param", site, tuple(grad.shape))))
    with cb:
        model(x).sum().backward()
    assert seen == [
        ("before", "fc1", 1),
        ("after", "fc1", (5, 6)),
        ("after", "fc2", (5, 3)),
        ("grad", "fc1", (5, 6)),
        ("param", "fc1.bias", (6,)),
    ]
    assert not nethook.audit(model)
    assert cb.firings["outputs['fc*']"] == 2


def test_functions_may_return_a_replacement(model, cb, x):
    cb.before("fc1")(lambda inputs: inputs[0] * 2)
    cb.after("fc2")(lambda output: output + 1)
    cb.on_grad("fc2")(lambda grad: grad * 0)
    cb.on_param_grad("fc2.bias")(lambda grad: grad + 7)
    with cb:
        changed = model(x)
        changed.sum().backward()
    torch.testing.assert_close(changed, model(x * 2) + 1)
    assert not model.fc1.weight.grad.any()
    assert torch.equal(model.fc2.bias.grad, torch.full((3,), 7.0))


def test_a_replacement_of_all_arguments_is_an_inputs():
    class Two(nn.Module):
        def forward(self, a, *, b):
            return a - b

    model = Two()
    cb = nethook.Callbacks(model)
    cb.before("")(lambda given: nethook.inputs(given["b"], b=given[0]))
    with cb:
        assert model(torch.tensor(1.0), b=torch.tensor(3.0)).item() == 2
    cb = nethook.Callbacks(model)
    cb.before("")(lambda given: given[0])
    with cb, pytest.raises(EditError, match="called with 2 arguments"):
        model(torch.tensor(1.0), b=torch.tensor(3.0))


def test_order_is_that_of_registration_and_priority_goes_first(model, cb, x):
    seen = []
    cb.after("fc1")(lambda _: seen.append("first"))
    cb.after("fc1", priority=1)(lambda _: seen.append("urgent"))
    cb.after(nn.Linear)(lambda _, site: seen.append(f"second {site}"))
    with cb:
        model(x)
    assert seen == ["urgent", "first", "second fc1", "second fc2"]


def test_a_decorated_function_stays_itself(cb):
    @cb.after("fc1")
    def function(output):
        return output

    assert function(3) == 3


def test_steps_of_an_optimizer_are_followed(model, cb, x):
    optimizer, seen = torch.optim.SGD(model.parameters(), 0.1), []
    cb.on_step(optimizer)(lambda opt: seen.append(opt is optimizer))
    with cb:
        model(x).sum().backward()
        optimizer.step()
    optimizer.step()
    assert seen == [True]


def test_attach_and_remove_any_number_of_times(model, cb, x):
    seen = []
    cb.after("fc1")(lambda _: seen.append(1))
    for _ in range(2):
        cb.attach()
        with pytest.raises(ScopeError, match="attached"):
            cb.attach()
        with pytest.raises(ScopeError, match="register before"):
            cb.after("fc2")(lambda _: None)
        model(x)
        cb.remove()
        cb.remove()
    model(x)
    assert len(seen) == 2
    assert "called: outputs['fc1']: 2" in repr(cb)


def test_a_pattern_that_matches_nothing_attaches_nothing(model, cb):
    cb.after("fc1")(lambda _: None)
    cb.after("fc9")(lambda _: None)
    with pytest.raises(NoSuchSiteError, match="fc9"):
        cb.attach()
    assert not nethook.audit(model)


def test_penalties_reach_the_inner_layers(model, cb, x):
    cb.penalty("relu", lambda out: out.abs().mean(), weight=0.1)
    cb.penalty("fc1", lambda out, site: out.square().sum() if site == "fc1" else 0)
    with cb:
        loss = F.mse_loss(model(x), torch.zeros(5, 3)) + cb.loss()
        loss.backward()
    grad = model.fc1.weight.grad.clone()
    model.zero_grad()
    a = model.fc1(x)
    b = F.relu(a)
    by_hand = F.mse_loss(model.fc2(b), torch.zeros(5, 3)) + 0.1 * b.abs().mean() + a.square().sum()
    by_hand.backward()
    torch.testing.assert_close(loss, by_hand)
    torch.testing.assert_close(grad, model.fc1.weight.grad)


def test_repeated_calls_count_once_each_and_are_forgotten_after_reading(model, cb, x):
    cb.penalty("relu", lambda out: out.sum())
    with cb:
        model(x)
        model(x)
        both = cb.loss()
        model(x)
        one = cb.loss()
        torch.testing.assert_close(both, 2 * one)
        with pytest.raises(EditError, match="saw nothing since the last time"):
            cb.loss()


def test_a_penalty_must_be_one_number_and_must_exist(model, cb, x):
    with pytest.raises(EditError, match="there are no penalties"):
        cb.loss()
    cb.penalty("relu", lambda out: out)
    with cb, pytest.raises(EditError, match=r"one number as a tensor; got \(5, 6\)"):
        model(x)


def test_a_penalty_under_checkpointing_counts_once(model, cb, x):
    cb.penalty("relu", lambda out: out.square().mean())
    with cb:
        (checkpoint(model, x, use_reentrant=False).sum() + cb.loss()).backward()
    grad = model.fc1.weight.grad.clone()
    model.zero_grad()
    b = F.relu(model.fc1(x))
    (model.fc2(b).sum() + b.square().mean()).backward()
    torch.testing.assert_close(grad, model.fc1.weight.grad)


def test_a_penalty_under_reentrant_checkpointing_is_refused_by_name(model, cb, x):
    cb.penalty("relu", lambda out: out.square().mean())
    x.requires_grad_()
    with cb, pytest.raises(EditError, match=r"reentrant checkpointing.*use_reentrant=False"):
        (checkpoint(model, x, use_reentrant=True).sum() + cb.loss()).backward()


def test_clipping_is_that_of_torch(model, cb, x):
    cb.clip_grad_norm("fc*", 0.1)
    with cb:
        model(x).sum().backward()
    clipped = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    for one, other in zip(clipped, model.parameters(), strict=True):
        torch.testing.assert_close(one, other.grad)


def test_activation_statistics_are_those_of_torch(model, cb, x):
    stats = cb.activation_stats(nn.Linear)
    with cb:
        model(x)
        model(2 * x)
    out = model.fc1(x)
    row = stats["fc1"]
    assert list(stats) == ["fc1", "fc2"]
    expected = {"mean": out.mean(), "std": out.std(), "min": out.min(), "max": out.max()}
    for name, value in expected.items():
        assert row[name][0] == pytest.approx(value.item(), rel=1e-5)
        assert len(row[name]) == 2


def test_a_dead_unit_is_silent_over_the_whole_window(model, cb, x):
    model.fc1.bias.data[2] = -100
    monitor = cb.dead_units("relu")
    with cb:
        for part in x:
            model(part.unsqueeze(0))
    expected = ~(F.relu(model.fc1(x)) > 0).any(0)
    assert torch.equal(monitor["relu"], expected)
    assert monitor.share("relu") == pytest.approx(expected.float().mean().item())
    assert "relu: " in repr(monitor)
    monitor.reset()
    assert len(monitor) == 0


@pytest.mark.parametrize(
    ("shape", "unit_dim", "units"),
    [
        ((2, 3), None, 3),
        ((2, 5, 3), None, 3),
        ((2, 3, 4, 4), None, 3),
        ((2, 3, 5), 1, 3),
        ((3,), None, 3),
    ],
)
def test_the_dimension_of_the_units(shape, unit_dim, units):
    model = nn.ReLU()
    cb = nethook.Callbacks(model)
    monitor = cb.dead_units("", unit_dim=unit_dim)
    value = -torch.ones(shape)
    value.movedim(1 if len(shape) == 4 or unit_dim else -1, 0)[1] = 1
    with cb:
        model(value)
    assert monitor[""].tolist() == [True, False, True]
    assert len(monitor[""]) == units


def test_shapes_are_printed_forward_and_backward(model, cb, x):
    out = io.StringIO()
    cb.print_shapes("fc*", grads=True, file=out)
    with cb:
        model(x).sum().backward()
    assert out.getvalue().splitlines() == [
        "output   fc1: (5, 6)",
        "output   fc2: (5, 3)",
        "gradient fc2: (5, 3)",
        "gradient fc1: (5, 6)",
    ]


def test_the_first_value_that_is_not_finite_is_named(model, cb, x):
    cb.check_finite()
    with cb:
        model(x).sum().backward()
        model.fc1.weight.data[0, 0] = float("nan")
        with pytest.raises(NotFiniteError, match="the output of 'fc1' has 5 of 30 values"):
            model(x)


def test_gradients_that_are_not_finite_are_named():
    model = nn.Sequential(nn.Linear(2, 2), nn.Identity())
    cb = nethook.Callbacks(model)
    cb.check_finite("0")
    with cb, pytest.raises(FloatingPointError, match="the gradient of '0'"):
        (model(torch.zeros(1, 2)) * float("inf")).sum().backward()


def test_gradients_are_checked_against_finite_differences(model, cb, x):
    model.double()
    model.fc2.bias.requires_grad_(False)
    model.unused = nn.Linear(2, 2).double()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.fc1.weight.grad = torch.ones_like(model.fc1.weight)
    state = torch.get_rng_state()
    report = cb.check_gradients(
        lambda: F.dropout(model(x.double()), 0.2).square().sum(), tolerance=1e-5
    )
    assert [check.state for check in report.checks] == ["ok", "ok", "ok", "frozen", "none", "none"]
    assert not report.ok
    assert "unused.weight" in str(report)
    assert "<td" in report._repr_html_()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(model.fc1.weight.grad, torch.ones_like(model.fc1.weight))


def test_a_wrong_gradient_is_found(x):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.tail = nn.Linear(4, 3), nn.Linear(3, 1)

        def forward(self, value):
            return self.tail(Wrong.apply(self.fc(value)))

    model = Net()
    report = nethook.Callbacks(model).check_gradients(lambda: model(x).sum())
    assert report["fc.weight"].state == "wrong"
    assert report["fc.weight"].error == pytest.approx(1 / 3, rel=0.05)
    assert report["tail.weight"].state == "ok"


def test_zero_and_infinite_gradients_are_told_apart(x):
    model = nn.Linear(4, 2)
    cb = nethook.Callbacks(model)
    assert cb.check_gradients(lambda: model(x).sum() * 0)["weight"].state == "zero"
    infinite = cb.check_gradients(lambda: model(x).sum() * float("inf"))
    assert infinite["bias"].state == "not finite"
    with pytest.raises(EditError, match="one number as a tensor"):
        cb.check_gradients(lambda: model(x))


class Reused(nn.Module):
    """One rectifier for two layers of different width, as in the notes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.relu = nn.Linear(4, 6), nn.Linear(6, 3), nn.ReLU()

    def forward(self, x):
        return self.relu(self.fc2(self.relu(self.fc1(x))))


def test_the_calls_of_a_module_that_is_used_twice_are_kept_apart(x):
    model = Reused()
    cb = nethook.Callbacks(model)
    dead, stats = cb.dead_units("relu"), cb.activation_stats("relu")
    with cb:
        model(x)
        model(x)
    assert list(dead) == list(stats) == ["relu, call 0", "relu, call 1"]
    assert [len(dead[name]) for name in dead] == [6, 3]
    assert len(stats["relu, call 1"]["mean"]) == 2
    with pytest.raises(NoSuchSiteError, match=r"Seen: 'relu, call 0', 'relu, call 1'"):
        dead["relu"]


def test_a_module_that_is_called_on_its_own_is_one_site(x):
    model = Reused()
    cb = nethook.Callbacks(model)
    dead = cb.dead_units("relu")
    with pytest.raises(NoSuchSiteError, match="Nothing has been seen yet"):
        dead["relu"]
    with cb:
        model.relu(model.fc1(x))
        model.relu(model.fc1(x))
    assert list(dead) == ["relu"]


def test_a_callback_that_was_never_called_is_warned_of(model, cb, x):
    cb.after("fc1")(lambda _: None)
    cb.after(nn.ReLU)(lambda _: None)
    with pytest.warns(UserWarning, match=r"outputs\[ReLU\] was never applied: 'relu' did not run"):
        with cb:
            model.fc1(x)
    with cb:
        model(x)
    with pytest.warns(UserWarning, match="never applied"):
        with cb:
            pass


def test_a_forward_without_gradient_adds_nothing_to_the_penalty(model, cb, x):
    cb.penalty("relu", lambda out: out.sum())
    with cb:
        with torch.no_grad():
            model(x)
        with pytest.raises(EditError, match="only without gradient"):
            cb.loss()
        model(x)
        assert cb.loss().requires_grad
