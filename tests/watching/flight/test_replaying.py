"""A replay names the operation that made the first NaN, and leaves everything as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from nethook.errors import InputsError, NoSuchRunError, NotARunError
from nethook.watching.flight.file import Flight, flight_path, load, save
from nethook.watching.flight.replaying import Replay, replay
from tests.watching import flight_cases as cases
from tests.watching.flight_runs import watched

NAMED = [
    (cases.log_of_zero, "forward", "/log#0", "log of 0", 2),
    (cases.empty_mask, "forward", "/div#0", "0/0", 2),
    (cases.half_overflow, "forward", "1/linear#0", "overflow of float16", 2),
    (cases.root_at_zero, "backward", "/sqrt#0", "derivative of sqrt at 0 is infinite", 2),
    (cases.exploding_rnn, "forward", "rnn/rnn_relu#0", "overflow of float32", 2),
    (cases.nan_in_data, "data", "0/linear#0", "the batch is not finite", 2),
    (cases.nan_in_parameters, "parameters", "1/linear#0", "the parameters are not finite", 0),
]


def run(make, tmp_path: Path, **options) -> tuple[cases.Case, Replay]:
    watched(make(), tmp_path / "run.db", budget=None)
    case = make()
    return case, replay(tmp_path / "run.db", case.model, **options)


@pytest.mark.parametrize(("make", "case", "operation", "reason", "step"), NAMED)
def test_operation_reason_step_and_line(make, case, operation, reason, step, tmp_path):
    _, found = run(make, tmp_path)
    assert found.reproduced
    assert (found.case, found.operation, found.step) == (case, operation, step)
    assert found.site == operation.partition("/")[0]
    assert reason in found.reason
    assert found.inputs
    assert any(not each.finite for each in found.output)
    if found.site == "":  # the others run in a module of torch, called by one of torch
        assert "flight_cases.py:" in found.source
        assert found.source.endswith(" in forward")


def test_a_loss_of_the_script_can_be_given(tmp_path):
    case, found = run(cases.log_in_loss, tmp_path)
    assert not found.reproduced
    assert found.notes[-1] == "the loss is not one of torch's: give it with `loss=`"
    found = replay(tmp_path / "run.db", case.model, loss=lambda output: -torch.log(output).mean())
    assert (found.reproduced, found.case, found.site) == (True, "loss", "loss")
    assert found.operation == "loss/log#0"
    assert "log of 0" in found.reason


def test_a_loss_of_torch_is_known(tmp_path):
    _, found = run(cases.nan_in_targets, tmp_path)
    assert (found.reproduced, found.case, found.operation) == (True, "data", "loss/mse_loss#0")


def test_what_the_optimizer_made_does_not_happen_again(tmp_path):
    _, found = run(cases.adam_without_eps, tmp_path)
    assert (found.reproduced, found.case, found.site) == (False, "optimizer", "0.weight")
    assert "neither forward nor backward" in found.notes[-1]


def test_ranges_say_what_the_operation_was_given(tmp_path):
    _, found = run(cases.log_of_zero, tmp_path)
    [given] = found.inputs
    assert (given.shape, given.dtype, given.finite) == ((8, 4), "float32", True)
    assert given.zeros > 0
    assert found.output[0].neginf == given.zeros


class Noisy(nn.Module):
    """Divides by what dropout leaves, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        kept = self.drop(torch.ones(4))
        return self.norm(self.fc(x)).sum(1, keepdim=True) / kept.sum() * torch.ones(2)


def noisy() -> cases.Case:
    return cases.Case(Noisy(), cases.batches(60), optimizer=lambda p: torch.optim.SGD(p, 1e-3))


def test_dropout_falls_as_it_fell(tmp_path):
    torch.manual_seed(0)
    [event] = watched(noisy(), tmp_path / "run.db")
    assert event.data["case"] == "forward"
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        found = replay(tmp_path / "run.db", Noisy())
        assert (found.reproduced, found.operation) == (True, "/div#0")
        assert "division by 0" in found.reason


def test_nothing_is_changed_by_it(tmp_path):
    torch.manual_seed(0)
    watched(noisy(), tmp_path / "run.db")
    model = Noisy().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    replay(tmp_path / "run.db", model)
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module.training for module in model.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert not model._forward_hooks


def test_a_mask_that_hides_a_whole_row(tmp_path):
    def make():
        case = cases.infinite_mask()
        case.model.mask.forward = lambda scores: scores.masked_fill(
            torch.ones(scores.shape[-2:], dtype=torch.bool), float("-inf")
        )
        return case

    _, found = run(make, tmp_path)
    assert found.operation == "/softmax#0"
    assert "all of it is masked" in found.reason


class Absorbed(nn.Module):
    """Makes an infinity that a tanh takes back, and then one that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.fc(x)
        return torch.tanh((hidden * 1e30).pow(3)) + hidden * 1e30 * 1e30


def test_an_infinity_that_does_not_reach_the_end_is_not_blamed(tmp_path):
    _, found = run(lambda: cases.Case(Absorbed(), cases.batches()), tmp_path)
    assert found.operation == "/mul#2"


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Behind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return Own.apply(self.fc(x) / 0)


def test_behind_a_function_of_the_user(tmp_path):
    _, found = run(lambda: cases.Case(Behind(), cases.batches()), tmp_path)
    assert found.operation == "/div#0"


class Squares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.norm = nn.LayerNorm(2)

    def forward(self, x):
        return self.norm(self.fc(x) * 1e30)


def test_a_norm_that_overflows_inside(tmp_path):
    _, found = run(lambda: cases.Case(Squares(), cases.batches()), tmp_path)
    assert found.operation == "norm/layer_norm#0"
    assert "it squares them" in found.reason


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.fc(x)
        hidden.div_(torch.zeros(2))
        return hidden


def test_an_operation_in_place_is_judged_by_what_it_was_given(tmp_path):
    _, found = run(lambda: cases.Case(InPlace(), cases.batches()), tmp_path)
    assert found.operation == "/div#0"
    assert "division by 0" in found.reason
    assert found.inputs[0].finite


class Where(nn.Module):
    """The classic: the branch that is not taken has an infinite derivative."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)
        nn.init.zeros_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        hidden = self.fc(x)
        return torch.where(hidden > 0, hidden.sqrt(), hidden)


def test_the_derivative_of_a_branch_that_was_not_taken(tmp_path):
    _, found = run(lambda: cases.Case(Where(), cases.batches()), tmp_path)
    assert (found.case, found.operation) == ("backward", "/sqrt#0")
    assert "derivative of sqrt at 0" in found.reason


def test_under_autocast(tmp_path):
    class Auto(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 2, bias=False)
            nn.init.constant_(self.fc.weight, 3e38)

        def forward(self, x):
            return self.fc(x).float()

    case = cases.Case(Auto(), cases.batches())
    with torch.autocast("cpu", torch.bfloat16):
        watched(case, tmp_path / "run.db")
    saved = load(tmp_path / "run.db")
    assert saved.autocast == {"cpu": "bfloat16"}
    found = replay(tmp_path / "run.db", Auto())
    assert found.operation == "fc/linear#0"
    assert "overflow of bfloat16" in found.reason


# -- what it prints, and what it refuses -----------------------------------------------------------


def test_it_prints_as_a_table(tmp_path):
    _, found = run(cases.log_of_zero, tmp_path)
    text = repr(found)
    assert text.splitlines()[0] == "step 2: /log#0 made it (forward)"
    assert "log of 0: " in text
    assert "float32[8, 4]" in text
    assert "<table>" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["operation"] == "/log#0"


def test_another_model_is_refused(tmp_path):
    watched(cases.log_of_zero(), tmp_path / "run.db")
    with pytest.raises(InputsError, match=r"The model is not that of the run: .*'0\.bias'"):
        replay(tmp_path / "run.db", nn.Sequential(nn.Linear(4, 4)))


def test_a_run_without_a_nan_has_nothing_to_replay(tmp_path):
    with pytest.raises(NoSuchRunError, match=r"only after nethook\.watch has seen a NaN"):
        replay(tmp_path / "run.db", nn.Linear(1, 1))


def test_the_file_itself_can_be_named(tmp_path):
    watched(cases.log_of_zero(), tmp_path / "run.db")
    assert replay(flight_path(tmp_path / "run.db"), cases.log_of_zero().model).reproduced


class Odd:
    pass


def test_a_batch_that_could_not_be_saved_can_be_given(tmp_path):
    path = tmp_path / "x.flight.safetensors"
    x = torch.tensor([[-1.0, 1.0]])
    save(path, Flight({"case": "forward", "step": 1}, (x, Odd())))
    saved = load(path)
    assert saved.left_out == ["args.1 (Odd)"]

    class Log(nn.Module):
        def forward(self, x, _=None):
            return x.log()

    with pytest.raises(InputsError, match=r"args\.1 \(Odd\).*inputs=nethook\.inputs"):
        replay(path, Log())
    found = replay(path, Log(), inputs=x)
    assert (found.operation, found.step) == ("/log#0", 1)
    assert "log of a negative number" in found.reason
    assert found.notes == ("the weights of the step were not held: these are the model's own",)


# -- the file --------------------------------------------------------------------------------------


def test_what_is_saved_is_read_back(tmp_path):
    path = tmp_path / "x.flight.safetensors"
    shared = torch.arange(6.0).reshape(2, 3)
    state = torch.get_rng_state()
    flight = Flight(
        {"case": "forward", "reason": "a\nb", "value": float("nan")},
        (shared, (shared.T, None), [1, 2.5, "three", True]),
        {"mask": {"a": torch.ones(2, dtype=torch.bool)}, "grad": torch.ones(1, requires_grad=True)},
        {"cpu": state},
        {"cpu": "bfloat16"},
        {"weight": torch.randn(3).to(torch.bfloat16)},
        {"": True, "fc": False},
    )
    save(path, flight)
    read = load(path)
    assert torch.equal(read.args[0], shared)
    assert isinstance(read.args[1], tuple)
    assert torch.equal(read.args[1][0], shared.T)
    assert read.args[1][1] is None
    assert read.args[2] == [1, 2.5, "three", True]
    assert torch.equal(read.kwargs["mask"]["a"], torch.ones(2, dtype=torch.bool))
    assert read.kwargs["grad"].requires_grad
    assert torch.equal(read.random["cpu"], state)
    assert read.weights["weight"].dtype is torch.bfloat16
    assert (read.training, read.autocast) == (flight.training, flight.autocast)
    assert [each.name for each in tmp_path.iterdir()] == ["x.flight.safetensors"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a safetensors file",
        b"\xff" * 64,
    ],
)
def test_a_foreign_file_is_refused(content, tmp_path):
    path = tmp_path / "x.flight.safetensors"
    path.write_bytes(content)
    with pytest.raises(NotARunError):
        load(path)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "[]",
        "{",
        '{"nethook_flight": 2}',
        '{"nethook_flight": 1}',
        "[" * 100_000,
        json.dumps(
            {
                "nethook_flight": 1,
                "finding": {},
                "args": [{"tensor": "nowhere"}],
                "kwargs": {"mapping": {}},
                "random": {"mapping": {}},
                "weights": {"mapping": {}},
                "loss": {"mapping": {}},
                "autocast": {},
                "training": {},
                "left_out": [],
            }
        ),
    ],
)
def test_a_damaged_or_hostile_file_is_refused(text, tmp_path):
    path = tmp_path / "x.flight.safetensors"
    save_file({"a": torch.ones(1)}, path, None if text is None else {"nethook_flight": text})
    with pytest.raises(NotARunError):
        load(path)


def test_no_function_is_run_that_the_file_names(tmp_path):
    path = tmp_path / "x.flight.safetensors"
    loss = {"function": "hardtanh", "target": torch.ones(1), "path": "", "reduction": "mean"}
    save(path, Flight({"case": "loss", "step": 0}, (torch.ones(1, 1),), loss=loss))
    with pytest.raises(ValueError, match="not a loss function"):
        replay(path, nn.Linear(1, 1))
    assert hasattr(F, "hardtanh")
