"""It can learn at all: what a few steps on one batch show, and that nothing else moves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.examine import OUT_OF_TIME, examine
from nethook.examining.experiments.network.can_learn import STEPS, CanLearn
from nethook.examining.limits import Deadline
from nethook.examining.rehearsal import Rehearsal
from tests.examining.experiments.healthy import HEALTHY, classes, mlp
from tests.examining.experiments.ill import ILL
from tests.examining.experiments.steps import Calls, Step, step


def with_optimizer(made: Step, kind: Any = torch.optim.SGD, **options: Any) -> Rehearsal:
    return made.rehearsal(
        kind(made.model.parameters(), **(options or {"lr": 0.05, "momentum": 0.9}))
    )


def facts(rehearsal: Rehearsal) -> dict[str, Any]:
    assert CanLearn().applies(rehearsal) is None
    with torch.no_grad():  # as examinations run in a script's step
        result = CanLearn().run(rehearsal)
    assert result.outcome == "fine"
    return dict(result.facts)


def trained(made: Step, optimizer: torch.optim.Optimizer) -> float:
    """What a script would get that trains on one batch only."""
    for _ in range(STEPS):
        optimizer.zero_grad()
        made.then(made.inputs.call(made.model)).backward()
        optimizer.step()
    return float(made.then(made.inputs.call(made.model)).detach())


@pytest.mark.parametrize(
    "name",
    [
        "classifier", "batch_norm_in_training", "contrastive_pairs", "autoencoder", "denoiser",
        "bag_of_instances", "two_inputs_in_a_dict", "critic_without_targets", "language_model",
        "physics_with_second_derivatives", "model_that_returns_its_loss",
        "graph_network_with_edges",
    ],
)  # fmt: skip
def test_healthy_steps_learn_one_batch(name: str) -> None:
    torch.manual_seed(0)
    found = facts(with_optimizer(HEALTHY[name]()))
    assert found["steps"] == STEPS
    assert found["after"] < found["before"] - 0.1 * abs(found["before"])
    assert found["adam"] < found["before"] - 0.1 * abs(found["before"])


@pytest.mark.parametrize(
    ("kind", "options"),
    [(torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}), (torch.optim.AdamW, {"lr": 0.01})],
)
def test_the_losses_are_those_of_a_loop_in_a_script(kind: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    made = HEALTHY["classifier"]()
    found = facts(with_optimizer(made, kind, **options))
    state = {name: tensor.clone() for name, tensor in made.model.state_dict().items()}
    assert found["after"] == pytest.approx(trained(made, kind(made.model.parameters(), **options)))
    made.model.load_state_dict(state)
    adam = torch.optim.Adam(made.model.parameters(), lr=found["adam_rate"])
    assert found["adam"] == pytest.approx(trained(made, adam), rel=1e-5)
    assert found["optimizer"] == kind.__name__
    assert found["rate"] == options["lr"]


def test_a_rate_that_is_too_high_and_one_that_is_too_low() -> None:
    torch.manual_seed(0)
    made = HEALTHY["learning_the_identity"]()
    high, low = (facts(with_optimizer(made, lr=rate)) for rate in (100.0, 1e-7))
    assert high["after"] is None or high["after"] > 10 * high["before"]
    assert low["after"] == pytest.approx(low["before"], rel=1e-4)
    assert high["adam"] == low["adam"] < 0.9 * low["before"]


def test_what_nothing_can_learn() -> None:
    found = facts(with_optimizer(ILL["softmax_of_one_class"][1]()))
    assert found["before"] == found["after"] == found["adam"]


def test_nothing_of_the_script_moves() -> None:
    torch.manual_seed(0)
    y = classes(16)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    made = step(model, torch.randn(16, 8), then=lambda out: F.cross_entropy(out, y), loader=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    rehearsal = made.rehearsal(optimizer)
    models = (model, rehearsal.model)
    before = [{key: t.clone() for key, t in one.state_dict().items()} for one in models]
    state, first = torch.random.get_rng_state(), rehearsal.run().loss
    facts(rehearsal)
    assert torch.equal(state, torch.random.get_rng_state())
    for one, kept in zip(models, before, strict=True):
        assert all(torch.equal(kept[key], tensor) for key, tensor in one.state_dict().items())
        assert all(parameter.grad is None for parameter in one.parameters())
    assert not optimizer.state
    again = rehearsal.run().loss
    assert first is not None
    assert again is not None
    assert torch.equal(first, again)


def test_parameters_that_the_optimizer_does_not_have_stay() -> None:
    torch.manual_seed(0)
    made = HEALTHY["classifier"]()
    head = made.model[-1]  # type: ignore[index]
    rehearsal = made.rehearsal(torch.optim.SGD(head.parameters(), lr=0.1))
    found = facts(rehearsal)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    assert found["after"] == pytest.approx(trained(made, optimizer))


def test_where_it_does_not_apply() -> None:
    def reason(rehearsal: Rehearsal) -> str:
        return CanLearn().applies(rehearsal) or ""

    made = HEALTHY["classifier"]()
    assert reason(made.rehearsal()) == "no optimizer has parameters of it"
    other = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    assert reason(made.rehearsal(other)) == "no optimizer has parameters of it"
    assert "calls the model by itself" in reason(with_optimizer(made, torch.optim.LBFGS, lr=1.0))
    y, x = classes(16), torch.randn(16, 8)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(()))
    scaled = step(mlp(8, 3), x, then=lambda out: scaler.scale(F.cross_entropy(out, y)))
    assert reason(with_optimizer(scaled)) == "the loss is scaled for half precision"
    broken = step(mlp(8, 3), x, then=lambda out: out.sum() * float("nan"))
    assert reason(with_optimizer(broken)) == "the loss is not one finite number"
    read = step(mlp(8, 3), x, then=lambda out: (out / out.abs().max().item()).pow(2).mean())
    assert "read from the output" in reason(with_optimizer(read))


def test_embeddings_with_sparse_gradients() -> None:
    torch.manual_seed(0)
    y = classes(16)
    model = Calls(lambda self, x: self.words(x), words=nn.Embedding(20, 3, sparse=True))
    made = step(model, torch.arange(16), then=lambda out: F.cross_entropy(out, y))
    found = facts(with_optimizer(made, lr=1.0))
    assert max(found["after"], found["adam"]) < found["before"]


def test_time_that_is_not_there() -> None:
    rehearsal = with_optimizer(HEALTHY["classifier"]())
    examined = examine(rehearsal, [CanLearn()], deadline=Deadline(10.0))
    assert examined.results[0].outcome == "fine"
    rehearsal.longest = 6.0  # one run, and half of the time is 5
    examined = examine(rehearsal, [CanLearn()], deadline=Deadline(10.0, 10.0))
    assert examined.results[0].reason == OUT_OF_TIME
    assert len(examined.late) == 1
