"""The leaves of graphs against the optimizers, as the run's facts have them."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.watching.facts import graph


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 3)
        self.extra = [nn.Linear(5, 5)]

    def forward(self, x):
        return self.last(self.extra[0](self.first(x)).tanh())


def train(model, optimizer, steps=12, loss=F.cross_entropy):
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
        optimizer.step()


def info(path):
    with nethook.open_run(path) as run:
        return run.info


def watched(path, model, loop):
    with nethook.watch(model, to=path, budget=None) as watch:
        watch.be_silent()
        loop()
    return info(path)


def test_what_lies_in_a_list_and_what_the_optimizer_has(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    known = watched(tmp_path / "run.db", model, lambda: train(model, optimizer))
    facts = known["graph"]
    (other,) = facts["others"]
    assert (other["how"], other["where"], other["kind"]) == ("list", "extra", "Linear")
    assert (other["parameters"], other["elements"]) == (2, 30)
    assert not other["moved"]
    assert facts["unheld"] == []
    (held,) = [one for one in facts["optimizers"] if one["steps"]]
    assert (held["type"], held["parameters"], held["reached"], held["orphans"]) == ("SGD", 4, 4, 0)
    assert held["steps"] == 12
    assert known["seen"] == {"losses": 1, "backwards": 12, "gradients": 4}


def test_all_steps_of_an_optimizer_count_that_is_gone_when_the_watch_ends(tmp_path):
    model = Net()

    def loop():
        optimizer = torch.optim.SGD([*model.parameters()], 0.1)
        train(model, optimizer, steps=7)  # the last look is at the fifth
        gone = weakref.ref(optimizer)
        del optimizer
        gc.collect()
        assert gone() is None

    facts = watched(tmp_path / "run.db", model, loop)["graph"]
    (held,) = [one for one in facts["optimizers"] if one["steps"]]
    assert held["steps"] == 7


def test_looks_become_rare(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    known = watched(tmp_path / "run.db", model, lambda: train(model, optimizer, 300))
    assert 8 <= known["graph"]["looks"] <= 16


def test_another_loss_and_another_optimizer_are_looked_at_at_once(tmp_path):
    model = Net()
    first, second = (torch.optim.SGD(model.parameters(), 0.1) for _ in range(2))

    def squares(output, _):
        return output.square().mean()

    def loop():
        train(model, first, 100)
        before.append(graph_looks())
        train(model, first, 1, loss=squares)
        before.append(graph_looks())

    before = []
    path = tmp_path / "run.db"
    with nethook.watch(model, to=path, budget=None) as watch:
        watch.be_silent()
        recorder = next(each for each in watch._session.recorders if isinstance(each, graph.Graph))

        def graph_looks():
            return recorder._seen["looks"]

        loop()
        train(model, second, 2)
        before.append(graph_looks())
    assert before[1] > before[0]
    assert before[2] > before[1]


def test_a_backward_pass_without_the_model(tmp_path):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loop():
        for _ in range(6):
            model(torch.randn(2, 4))
            torch.tensor(1.0, requires_grad=True).backward()
            optimizer.step()

    known = watched(tmp_path / "run.db", model, loop)
    facts = known["graph"]
    assert facts["looks"] == facts["without"] > 0
    ((line, count),) = facts["leaf_roots"].items()
    assert line.startswith("test_graph.py:")
    assert count == facts["looks"]
    assert known["seen"]["gradients"] == known["seen"]["losses"] == 0


def test_a_run_without_a_backward_pass_says_that_nothing_was_seen(tmp_path):
    model = nn.Linear(4, 3)
    known = watched(tmp_path / "run.db", model, lambda: model(torch.randn(2, 4)))
    assert known["seen"] == {"losses": 0, "backwards": 0, "gradients": 0}
    assert "graph" not in known


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

    def forward(self, x):
        return self.net(x)


def train_beside(model, optimizer, critic, steps=6, *, own=None, mode=None):
    """Steps of a function: what is only its own is gone when it returns."""
    if mode is not None:
        critic.train(mode)
    for _ in range(steps):
        optimizer.zero_grad()
        critic.zero_grad()
        critic(model(torch.randn(8, 4))).mean().backward()
        optimizer.step()
        if own is not None:
            own(critic)


def of_networks(path):
    return [one for one in nethook.diagnose(path) if one.code == "optimizer-misses-parameters"]


def test_a_network_that_is_gone_when_its_function_has_returned(tmp_path):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    facts = watched(tmp_path / "run.db", model, lambda: train_beside(model, optimizer, Critic()))[
        "graph"
    ]
    (other,) = facts["others"]
    assert (other["how"], other["kind"], other["parameters"]) == ("module", "Critic", 2)
    (finding,) = of_networks(tmp_path / "run.db")
    assert finding.severity == "warning"
    assert "no optimizer has its 2 parameters" in finding.message


def step_by_hand(critic):
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.sub_(0.1 * parameter.grad)


def frozen():
    return Critic().requires_grad_(False)


def trained():
    """Its weights were written often before."""
    critic = Critic()
    with torch.no_grad():
        for _ in range(20):
            for parameter in critic.parameters():
                parameter.add_(0.01)
    return critic


@pytest.mark.parametrize(
    ("critic", "options"),
    [
        (frozen, {}),
        (Critic, {"own": step_by_hand}),
        (Critic, {"mode": False}),
        (lambda: nn.Linear(3, 1), {}),  # one of the kind of the model: a copy of it
        (Critic, {"steps": 2}),
    ],
)
def test_networks_of_a_function_that_are_left_out_on_purpose(tmp_path, critic, options):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watched(
        tmp_path / "run.db",
        model,
        lambda: train_beside(model, optimizer, critic(), **options),
    )
    assert of_networks(tmp_path / "run.db") == []


def test_a_trained_network_of_a_function_is_a_note(tmp_path):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watched(tmp_path / "run.db", model, lambda: train_beside(model, optimizer, trained()))
    assert [one.severity for one in of_networks(tmp_path / "run.db")] == ["info"]


def test_a_network_whose_optimizer_is_gone_with_it(tmp_path):
    """Both live in the function alone."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loop():
        critic = Critic()
        own = torch.optim.SGD(critic.parameters(), 0.1)
        train_beside(model, optimizer, critic, own=lambda _: own.step())

    watched(tmp_path / "run.db", model, loop)
    assert of_networks(tmp_path / "run.db") == []


def test_weights_that_are_moved_by_hand(tmp_path):
    model = nn.Linear(4, 3)

    def loop():
        for _ in range(6):
            F.cross_entropy(model(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
            for parameter in model.parameters():
                parameter.data -= 0.1 * parameter.grad
                parameter.grad = None

    facts = watched(tmp_path / "run.db", model, loop)["graph"]
    assert {one["address"]: one["moved"] for one in facts["unheld"]} == {
        "weight": True,
        "bias": True,
    }


def test_no_leaf_is_kept_alive(tmp_path):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, to=tmp_path / "run.db") as watch:
        watch.be_silent()
        x = torch.randn(8, 4, requires_grad=True)
        storage = weakref.ref(x.untyped_storage())
        gone = weakref.ref(x)
        F.cross_entropy(model(x), torch.randint(3, (8,))).backward()
        optimizer.step()
        optimizer.zero_grad()
        del x
        train(model, optimizer, 12)
        gc.collect()
        assert gone() is None
        assert storage() is None


def test_an_error_in_here_is_not_the_scripts(tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("broken")

    monkeypatch.setattr(graph, "leaves_of", broken)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    known = watched(tmp_path / "run.db", model, lambda: train(model, optimizer))
    assert known["totals"]["backwards"] == 12
    with nethook.open_run(tmp_path / "run.db") as run:
        (event,) = [each for each in run.events if each.kind == "watch-failed"]
        assert "the leaves of the graph" in event.message


@pytest.mark.parametrize("second", [False, True])
def test_gradients_of_gradients(tmp_path, second):
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loop():
        for _ in range(3):
            x = torch.randn(8, 4, requires_grad=True)
            energy = model(x).sum()
            (force,) = torch.autograd.grad(energy, x, create_graph=True)
            (force.square().mean() if second else energy).backward()
            optimizer.step()
            optimizer.zero_grad()

    assert watched(tmp_path / "run.db", model, loop)["graph"]["second_order"] is second
