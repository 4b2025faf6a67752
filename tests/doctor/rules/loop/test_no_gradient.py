"""The rule `no-gradient`: when it reports, and when it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from tests.doctor.ill import cut, frozen_end, graph, still, stuck, well
from tests.doctor.small_runs import STEPS, Net, batch, codes, findings, train
from tests.doctor.synthetic import LOSS, Made


def test_five_steps_without_a_gradient() -> None:
    (finding,) = cut(with_grad=0, moved=[0, 5], steps=5).found("no-gradient")
    assert finding.sites == ("a.weight",)
    assert "`a.weight` never got a gradient in 5 steps" in finding.message
    assert "between `a` and the loss" in finding.fix
    assert not cut(with_grad=0, moved=[0, 4], steps=4).found("no-gradient")


def test_a_module_that_is_called_in_less_than_half_of_the_steps() -> None:
    assert cut(with_grad=0, moved=[0, 5], steps=400).found("no-gradient")  # 200 calls
    assert not cut(with_grad=0, moved=[0, 5], steps=401).found("no-gradient")


def test_frozen_by_accident_and_on_purpose() -> None:
    facts: dict[str, Any] = {"with_grad": 0, "moved": [0, 5], "requires_grad": False}
    (finding,) = cut(**facts).found("no-gradient")
    assert "requires_grad is False" in finding.message
    made = well().module("a").module("b").parameter("a.weight", **facts).parameter("b.weight")
    assert not made.found("no-gradient")  # a backbone, in a run that learns


def test_frozen_while_the_run_went_on() -> None:
    facts: dict[str, Any] = {"with_grad": 0, "moved": [0, 5], "requires_grad": False}
    made = cut(**facts).event("parameters", 20, requires_grad={"a.weight": False})
    assert not made.found("no-gradient")
    other = cut(**facts).event("parameters", 20, requires_grad={"a.weight": True})
    assert other.found("no-gradient")


def zeros(made: Made, a: float = 1.0, b: float = 0.1, **facts: Any) -> Made:
    """Two weights with gradients, of which a share is zero."""
    made.parameter("a.weight", **facts).parameter("b.weight")
    made.series("a.weight", "param_grads", zero_share=a)
    return made.series("b.weight", "param_grads", zero_share=b)


def test_a_gradient_of_nothing_but_zeros() -> None:
    (finding,) = zeros(stuck()).found("no-gradient")
    assert finding.severity == "warning"
    assert finding.sites == ("a.weight",)
    assert "cancels out" in finding.message
    (finding,) = zeros(well()).found("no-gradient")
    assert finding.severity == "info"  # a term with the factor zero may be meant


def test_gradients_of_zeros_that_are_no_fault() -> None:
    assert not zeros(stuck(), a=0.99).found("no-gradient")  # a unit is alive, now and then
    assert not zeros(stuck(), b=1.0).found("no-gradient")  # the whole network is dead
    assert not zeros(stuck(), groups=[]).found("no-gradient")  # nobody steps on it
    assert not zeros(stuck(), shape=[16]).found("no-gradient")  # a bias before a norm
    assert not graph(zeros(stuck()), second_order=True).found("no-gradient")


def test_no_parameter_has_a_gradient() -> None:
    made = graph(still(), without=11, leaf_roots={"train.py:20": 11})
    (finding,) = made.found("no-gradient")
    assert finding.message.startswith("200 backward passes brought no gradient to any of the 1 ")
    assert "a tensor that no operation has made" in finding.message
    assert finding.lines == ("train.py:20",)
    (finding,) = graph(still(), without=11).record(source="train.py:7 in f").found("no-gradient")
    assert "the loss does not depend on the model" in finding.message
    assert finding.lines == (LOSS,)


def test_the_last_layer_is_frozen_at_random() -> None:
    (finding,) = frozen_end().found("no-gradient")
    assert finding.severity == "warning"
    assert finding.sites == ("b.weight",)
    assert not frozen_end().without("info.ops").found("no-gradient")


def test_a_frozen_layer_that_does_not_see_what_learns() -> None:
    """A random target network: its input comes from the data."""
    made = frozen_end()
    made.info["ops"][1]["from"] = []
    assert not made.found("no-gradient")


def test_a_frozen_layer_before_one_that_learns() -> None:
    made = frozen_end().module("c", parameters=["c.weight"]).parameter("c.weight")
    made.info["ops"].append({"site": "c", "op": "linear", "from": [1]})
    assert not made.found("no-gradient")


def loop_with(make_loss: Any) -> Any:
    def loop(model: Any, optimizer: Any, after: Any) -> None:
        for _ in range(STEPS):
            x, y = batch()
            optimizer.zero_grad()
            make_loss(model, x, y).backward()
            optimizer.step()

    return loop


def rewrapped(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = cross_entropy(model(x).data, y)
    return loss.clone().requires_grad_()


def of_numbers(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    start = torch.zeros(1, requires_grad=True).sum()
    return start + cross_entropy(model(x), y).item()


def detached(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return cross_entropy(model(x).detach().requires_grad_(), y)


@pytest.mark.parametrize("make_loss", [rewrapped, of_numbers, detached])
def test_a_loss_that_has_forgotten_the_model(tmp_path: Path, make_loss: Any) -> None:
    assert codes(tmp_path, Net(), loop_with(make_loss))[0] == "no-gradient"


def forces(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.requires_grad_()
    energy = model(x).sum()
    (force,) = torch.autograd.grad(energy, x, create_graph=True)
    return (force - x.detach()).square().mean()


def assigned(model: Any, optimizer: Any, after: Any) -> None:
    """Gradients that `torch.autograd.grad` has computed, put in their place by hand."""
    parameters = list(model.parameters())
    for _ in range(STEPS):
        x, y = batch()
        grads = torch.autograd.grad(cross_entropy(model(x), y), parameters)
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad
        optimizer.step()


class Probe(Net):
    """A linear probe: the features run without gradients."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = torch.tanh(self.first(x))
        return self.last(features)


class Checkpointed(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = checkpoint(self.first, x, use_reentrant=True)
        return self.last(torch.tanh(hidden))


def inputs_with_gradients(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return cross_entropy(model(x.requires_grad_()), y)


def evolution(model: Any, optimizer: Any, after: Any) -> None:
    """No backward pass at all."""
    for _ in range(STEPS):
        x, _ = batch()
        model(x)
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()


def test_hard_negatives(tmp_path: Path) -> None:
    assert "no-gradient" not in codes(tmp_path / "a", Net(), loop_with(forces))
    assert "no-gradient" not in codes(tmp_path / "b", Net(), assigned)
    model, trained = Probe(), Net()

    def load() -> None:
        model.first.load_state_dict(trained.first.state_dict())

    fast = torch.optim.Adam(model.parameters(), 0.1)
    assert "no-gradient" not in codes(tmp_path / "c", model, train, fast, before=load)
    reentrant = loop_with(inputs_with_gradients)
    assert "no-gradient" not in codes(tmp_path / "d", Checkpointed(), reentrant)
    assert "no-gradient" not in codes(tmp_path / "e", Net(), evolution)
    frozen = Net()
    frozen.first.requires_grad_(False)
    optimizer = torch.optim.Adam(frozen.last.parameters(), 0.01)
    assert "no-gradient" not in codes(tmp_path / "f", frozen, train, optimizer)


def test_a_frozen_random_head(tmp_path: Path) -> None:
    model = Net()
    model.last.requires_grad_(False)
    optimizer = torch.optim.Adam(model.first.parameters(), 0.01)
    assert codes(tmp_path / "a", model, train, optimizer) == ["no-gradient"]
    nn.init.zeros_(model.last.weight)  # somebody has put something there
    assert "no-gradient" not in codes(tmp_path / "b", model, train, optimizer)


def test_a_layer_whose_output_goes_nowhere_is_a_note(tmp_path: Path) -> None:
    class WaveNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.skips = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
            self.residuals = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
            self.end = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total = torch.zeros_like(x)
            for skip, residual in zip(self.skips, self.residuals, strict=True):
                h = torch.tanh(x)
                total = total + skip(h)
                x = x + residual(h)
            return self.end(torch.relu(total))

    notes = [one for one in findings(tmp_path, WaveNet(), train) if one.code == "no-gradient"]
    assert [(one.severity, one.sites) for one in notes] == [
        ("info", ("residuals.2.weight", "residuals.2.bias"))
    ]


class Pooled(nn.Module):
    """An encoder whose pooler nobody uses; what follows makes and is given tensors of its own."""

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        self.body, self.pooler, self.end = (nn.Linear(4, 4) for _ in range(3))
        self.leaks = leaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.body(x))
        pooled = torch.tanh(self.pooler(h))
        mask = torch.ones(len(x), 1) * x.sign().abs()  # made on the way, and of the input
        return self.end(h * mask + (pooled.data * 1.0 if self.leaks else 0.0))[:, :3]


def test_an_unused_pooler_before_masks_is_a_note_and_a_cut_one_is_not(tmp_path: Path) -> None:
    for leaks, severity in ((False, "info"), (True, "error")):
        found = findings(tmp_path / str(leaks), Pooled(leaks=leaks), train)
        notes = [one for one in found if one.code == "no-gradient"]
        assert [(one.severity, one.sites) for one in notes] == [
            (severity, ("pooler.weight", "pooler.bias"))
        ]


def test_steps_without_any_backward_pass() -> None:
    made = still().loop("backwards", 0).series("@loop", "empty_gradients", mean=1.0, min=1.0)
    (finding,) = made.found("no-gradient")
    assert finding.severity == "error"
    assert "made 200 steps, and no backward pass was ever run" in finding.message
    # Gradients that somebody has set by hand.
    by_hand = still().loop("backwards", 0).series("@loop", "empty_gradients", mean=0.5, min=0.5)
    assert not by_hand.found("no-gradient")


def through_data(**facts: Any) -> Made:
    made = well().module("a", calls={"train": 0}).module("b").parameter("b.weight")
    made.parameter("a.weight", **{"with_grad": 0, "moved": [0, 200], **facts})
    made.info["ops"] = {"Net": [{"site": "", "op": "t", "from": [], "data_of": ["a.weight"]}]}
    return made


def test_weights_that_are_read_through_data() -> None:
    (finding,) = through_data().found("no-gradient")
    assert finding.sites == ("a.weight",)
    assert "reads it through .data or .detach()" in finding.message
    assert not through_data(with_grad=200).found("no-gradient")
    assert not through_data(groups=[]).found("no-gradient")
    assert not through_data(moved=[200, 200]).found("no-gradient")
