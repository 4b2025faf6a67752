"""For each finding a small faulty script, and the fields of the run that decide it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.examining import limits
from tests.running.both import under
from tests.watching.loops import batches, mlp
from tests.watching.patient import patient  # noqa: F401 - used by every test

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")


@pytest.fixture
def follow(tmp_path):
    """`follow(model, optimizer, script)` runs a script while it is watched, and opens the run."""

    def start(model, optimizer, script, **options):
        options.setdefault("budget", None)
        with nethook.watch(model, optimizer, to=tmp_path / "run.db", **options) as watch:
            script(watch)
        return nethook.open_run(tmp_path / "run.db")

    return start


def sgd(model, lr=0.1, **options):
    return torch.optim.SGD(model.parameters(), lr, **options)


def train(model, optimizer, data, loss=F.cross_entropy, *, zero=True, step=True):
    def script(watch):
        for x, y in data:
            if zero:
                optimizer.zero_grad()
            loss(model(x), y).backward()
            if step:
                optimizer.step()

    return script


def loop(run, quantity):
    return run.series("@loop", quantity)["mean"]


def site(run, address):
    (found,) = [each for each in run.sites if each.address == address]
    return found.info


def events(run, kind):
    return [event for event in run.events if event.kind == kind]


def record(run):
    return run.losses[0].data


def test_critic_in_policy_loss(follow):
    model = mlp()
    optimizer = sgd(model)
    critic = nn.Linear(8, 1)

    def loss(out, y):
        value = critic(torch.ones(len(y), 8)).squeeze(1)
        return -(out.log_softmax(1)[range(len(y)), y] * (torch.rand(len(y)) - value)).mean()

    run = follow(model, optimizer, train(model, optimizer, batches(6), loss))
    ((line, count),) = run.info["graph"]["critics"].items()
    assert line.startswith("test_fields_for_findings.py:")
    assert count >= 3


def test_optimizer_recreated(follow):
    model = mlp()

    def script(watch):
        for x, y in batches(6):
            optimizer = sgd(model, momentum=0.9)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()

    run = follow(model, None, script)
    made = events(run, "groups")
    assert len(made) == 6
    # Of two at one place in memory the second may have the name of the first.
    assert len({event.data["optimizer"] for event in made}) >= 2
    assert {event.data["type"] for event in made} == {"SGD"}
    weight = next(each for each in run.sites if each.kind == "Parameter")
    assert len(weight.info["groups"]) >= 2


# -- the loop's contract --------------------------------------------------------------------------


def test_missing_step(follow):
    model = mlp()
    run = follow(model, None, train(model, sgd(model), batches(5), step=False))
    assert run.info["totals"]["backwards"] == 5
    assert run.info["totals"]["optimizer_steps"] in ({}, {"0": 0})
    assert run.info["clock"] == "backward"
    assert loop(run, "optimizer_steps").sum() == 0


def test_missing_zero_grad(follow):
    model = mlp()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(5), zero=False))
    assert loop(run, "old_gradients").tolist() == [0, 1, 1, 1, 1]
    assert loop(run, "zero_grads").sum() == 0


def test_accumulation_done_right_has_no_old_gradients(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for at, (x, y) in enumerate(batches(6)):
            (F.cross_entropy(model(x), y) / 2).backward()
            if at % 2:
                optimizer.step()
                optimizer.zero_grad()

    run = follow(model, optimizer, script)
    assert loop(run, "old_gradients").sum() == 0
    assert loop(run, "backwards").tolist() == [2, 2, 2]
    assert record(run)["divided_by"] == 2


@pytest.mark.parametrize("to_none", [True, False])
def test_gradient_wiped(follow, to_none):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for x, y in batches(3):
            F.cross_entropy(model(x), y).backward()
            optimizer.zero_grad(set_to_none=to_none)
            optimizer.step()

    run = follow(model, optimizer, script)
    order = events(run, "order")[0].data["calls"]
    assert order.index("backward") < order.index("zero_grad") < order.index("step")
    assert loop(run, "wiped_backwards").tolist() == [1, 1, 1]
    assert loop(run, "empty_gradients").tolist() == [1, 1, 1]


def test_call_without_effect(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for x, y in batches(3):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    run = follow(model, optimizer, script)
    order = events(run, "order")[0].data
    assert order["calls"] == ["zero_grad", "forward", "backward", "step", "clip"]
    assert {call: line.rpartition(":")[0] for call, line in order["lines"].items()} == {
        "zero_grad": __file__,
        "clip": __file__,
    }


def test_diverged(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for at, (x, y) in enumerate(batches(6)):
            if at == 3:
                optimizer.param_groups[0]["lr"] = 50.0
            optimizer.zero_grad()
            F.cross_entropy(model(x if at < 3 else 100 * x), y).backward()
            optimizer.step()

    run = follow(model, optimizer, script)
    rates = run.scalars["lr:0.0"]
    assert list(zip(rates.step.tolist(), rates.value.tolist(), strict=True)) == [(0, 0.1), (3, 50)]
    size = run.series("", "inputs")["rms"]
    assert size[3:].min() > 20 * size[:3].max()


def test_optimizer_misses_parameters(follow):
    model = mlp()
    optimizer = torch.optim.SGD(model[2].parameters(), 0.1)
    run = follow(model, optimizer, train(model, optimizer, batches(4)))
    missed = site(run, "0.weight")
    assert missed["groups"] == []
    assert missed["with_grad"] == missed["steps"] == 4
    assert missed["moved"] == [0, 3]  # measured from the end of one step to the end of the next
    updates = run.series("0.weight", "updates")
    assert (updates["zeros"] == updates["count"])[1:].all()
    assert site(run, "2.weight")["groups"] == [["0", 0]]
    assert site(run, "2.weight")["moved"] == [4, 4]


def test_no_gradient(follow):
    class Cut(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(10, 8), nn.Linear(8, 5)

        def forward(self, x):
            return self.second(self.first(x).detach())

    model = Cut()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(4)))
    assert site(run, "first")["calls"]["train"] == 4
    assert site(run, "first.weight")["with_grad"] == 0
    assert site(run, "first.weight")["requires_grad"]
    assert site(run, "second.weight")["with_grad"] == 4


class InAList(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.last = [nn.Linear(10, 8)], nn.Linear(8, 5)

    def forward(self, x):
        return self.last(self.layers[0](x))


def test_unregistered_layers(follow):
    model = InAList()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(4)))
    (other,) = run.info["graph"]["others"]
    assert (other["how"], other["where"], other["parameters"]) == ("list", "layers", 2)
    assert (other["moved"], other["filled"]) == (False, False)
    assert run.info["seen"]["gradients"] == 2


def test_stale_optimizer(follow):
    model = mlp()
    optimizer = sgd(model)
    model[-1] = nn.Linear(model[-1].in_features, 5)
    run = follow(model, optimizer, train(model, optimizer, batches(6)))
    last = len(model) - 1
    assert {one["address"] for one in run.info["graph"]["unheld"]} == {
        f"{last}.weight", f"{last}.bias"
    }  # fmt: skip
    (held,) = [one for one in run.info["graph"]["optimizers"] if one["steps"]]
    assert (held["parameters"], held["of_models"], held["orphans"]) == (4, 2, 2)


def test_call_without_effect_of_an_attribute(follow):
    model = mlp()
    model[0].weight.require_grad = False
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(2)))
    (attribute,) = run.info["graph"]["attributes"]
    assert (attribute["name"], attribute["meant"]) == ("require_grad", "requires_grad")


def test_a_sparse_gradient_is_a_gradient(follow):
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(12, 8, sparse=True), nn.Linear(8, 5)

        def forward(self, x):
            return self.head(self.table(x.argmax(1)))

    model = Words()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = follow(model, optimizer, train(model, optimizer, batches(4)))
    assert site(run, "table.weight")["with_grad"] == 4


def test_eval_mode_training(follow):
    model = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.Linear(8, 5))
    model.eval()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    assert site(run, "1")["modes"] == [[0, "train", False]]
    assert site(run, "1")["activation"] == "norm"


def test_train_mode_evaluation(follow):
    model = nn.Sequential(nn.Linear(10, 8), nn.Dropout(), nn.Linear(8, 5))
    optimizer = sgd(model)

    def script(watch):
        for x, y in batches(4):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for _ in range(2):
                    F.cross_entropy(model(x), y)

    run = follow(model, optimizer, script)
    assert [1, "eval", True] in site(run, "1")["modes"]
    assert site(run, "1")["calls"]["eval"] == 8
    assert len(run.series("1", "outputs", phase="eval")) == 4
    losses = [loss for loss in run.losses if loss.phase == "eval"]
    values = run.series(f"@loss:{losses[0].name}", "loss", phase="eval")
    assert values["count"].tolist() == [2, 2, 2, 2]


def test_clipped_before_unscale(follow):
    model = mlp()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def script(watch):
        for x, y in batches(3):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(x), y)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()

    run = follow(model, optimizer, script)
    assert loop(run, "scaled_clips").tolist() == [1, 1, 1]
    assert events(run, "order")[0].data["scaler"]


def test_unscaled_accumulation(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for at, (x, y) in enumerate(batches(6)):
            F.cross_entropy(model(x), y).backward()
            if at % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()

    run = follow(model, optimizer, script)
    assert loop(run, "backwards").tolist() == [3, 3]
    assert record(run)["divided_by"] is None


def test_scheduler_collapse(follow):
    model = mlp()
    optimizer = sgd(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.1)

    def script(watch):
        for x, y in batches(5):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()

    run = follow(model, optimizer, script)
    rate = run.scalars["lr:0.0"]
    assert rate.step.tolist() == [0, 1, 2, 3, 4]
    assert np.allclose(rate.value, [0.1 * 0.1**at for at in range(5)])
    assert events(run, "order")[0].data["calls"][-1] == "schedule"


# -- loss and target ------------------------------------------------------------------------------


def test_softmax_before_cross_entropy(follow):
    model = nn.Sequential(nn.Linear(10, 5), nn.Softmax(-1))
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    data = record(run)
    assert data["kind"] == "cross_entropy"
    assert data["chain"][:3] == ["NllLoss", "LogSoftmax", "Softmax"]
    low, high = data["row_sums"]
    assert 0.999 < low <= high < 1.001


def test_loss_target_mismatch(follow):
    model = nn.Sequential(nn.Linear(10, 1))
    optimizer = sgd(model)

    def squared(out, y):
        return F.mse_loss(out, y.float().unsqueeze(1))

    run = follow(model, optimizer, train(model, optimizer, batches(3), squared))
    target = record(run)["target"]
    assert record(run)["kind"] == "mse"
    assert target["integral"]
    assert target["distinct"] <= 5
    assert (target["min"], target["max"]) >= (0, 0)


def test_loss_broadcast(follow):
    model = nn.Sequential(nn.Linear(10, 1))
    optimizer = sgd(model)
    run = follow(
        model, optimizer, train(model, optimizer, batches(2), lambda o, y: F.mse_loss(o, y.float()))
    )
    data = record(run)
    assert data["broadcast"]
    assert data["prediction"]["shape"] == [8, 1]
    assert data["target"]["shape"] == [8]


def test_negative_loss(follow):
    model = mlp()
    optimizer = sgd(model)
    run = follow(
        model, optimizer, train(model, optimizer, batches(3), lambda o, y: -F.cross_entropy(o, y))
    )
    assert record(run)["negated"]
    assert run.series(f"@loss:{run.losses[0].name}", "loss")["max"].max() < 0


def test_output_range(follow):
    model = nn.Sequential(nn.Linear(10, 1), nn.Sigmoid())
    optimizer = sgd(model)

    def script(watch):
        for x, _ in batches(3):
            optimizer.zero_grad()
            F.mse_loss(model(x), 5 * x[:, :1]).backward()
            optimizer.step()

    run = follow(model, optimizer, script)
    assert site(run, "1")["bounds"] == [0.0, 1.0]
    assert record(run)["target"]["max"] > 1
    assert run.series("", "outputs")["max"].max() <= 1


# -- data and input -------------------------------------------------------------------------------


def test_input_not_normalized(follow):
    model = mlp()
    optimizer = sgd(model, 1e-4)
    data = [(100 + 50 * x, y) for x, y in batches(3)]
    run = follow(model, optimizer, train(model, optimizer, data))
    assert run.series("", "inputs")["mean"].min() > 50
    assert run.series("", "inputs")["std"].min() > 10


def test_input_collapsed_and_input_ignored(follow):
    model = mlp()
    optimizer = sgd(model)
    data = [(torch.full((8, 10), 0.3), y) for _, y in batches(3)]
    run = follow(model, optimizer, train(model, optimizer, data))
    batch = {
        q: run.series("@batch", q)["mean"]
        for q in ("input_spread", "output_spread", "input_distinct", "size")
    }
    assert (batch["input_spread"] < 1e-6).all()
    assert (batch["output_spread"] < 1e-6).all()
    assert (batch["input_distinct"] == 1).all()
    assert (batch["size"] == 8).all()


def test_input_ignored(follow):
    model = mlp()
    nn.init.zeros_(model[0].weight)
    optimizer = sgd(model, 0.0)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    assert (run.series("@batch", "input_spread")["mean"] > 0.5).all()
    assert (run.series("@batch", "output_spread")["mean"] < 1e-6).all()


def test_repeated_batch(follow):
    model = mlp()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(1) * 4))
    assert run.series("@batch", "repeated")["mean"][1:].tolist() == [1, 1, 1]
    assert len(set(run.scalars["batch_fingerprint"].value.tolist())) == 1


# -- the start ------------------------------------------------------------------------------------


def test_symmetric_init(follow):
    model = mlp()
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(5)))
    weight = site(run, "0.weight")
    assert weight["rows"] == 16
    assert weight["distinct_rows"] == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert weight["distinct_grad_rows"]["0"] == 1


def test_bad_init_scale(follow):
    layers = [layer for _ in range(4) for layer in (nn.Linear(10, 10), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(10, 5))
    for each in model:
        if isinstance(each, nn.Linear):
            nn.init.normal_(each.weight, std=0.01)
            nn.init.zeros_(each.bias)
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(2)))
    depth = sorted(
        (site(run, str(at))["first_call"], run.series(str(at), "outputs")["std"][0])
        for at in (0, 2, 4, 6)
    )
    assert depth[0][1] > 10 * depth[-1][1]
    assert run.series("0.weight", "params")["std"][0] < 0.02


def test_missing_activation(follow):
    model = nn.Sequential(nn.Linear(10, 8), nn.Linear(8, 5))
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(2)))
    first, second = run.info["ops"]
    assert (first["site"], first["op"], second["site"]) == ("0", "linear", "1")
    assert second["from"] == [0]
    assert first["linear"]
    assert second["linear"]
    with_one = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 5))
    optimizer = sgd(with_one)
    run.close()
    run.path.unlink()
    run = follow(with_one, optimizer, train(with_one, optimizer, batches(2)))
    assert [op["op"] for op in run.info["ops"]] == ["linear", "relu", "linear"]
    assert "linear" not in run.info["ops"][1]


# -- settings of the optimizer --------------------------------------------------------------------


@pytest.mark.parametrize("lr", [50.0, 1e-9])
def test_learning_rate_too_high_or_too_low(follow, lr):
    model = mlp()
    optimizer = sgd(model, lr)
    run = follow(model, optimizer, train(model, optimizer, batches(5)))
    ratio = run.series("0.weight", "updates")["rms"] / run.series("0.weight", "params")["rms"]
    assert ratio[0] > 0.1 if lr > 1 else (ratio < 1e-6).all()
    assert len(run.scalars["update_ratio"].value) == 5
    assert len(run.scalars[f"loss:{run.info['losses'][0]}"].value) == 5
    assert (run.series("0.weight", "param_grads")["rms"] > 0).all()


def test_oscillating_loss(follow):
    model = nn.Linear(1, 1, bias=False)
    optimizer = sgd(model, 0.95)
    x = torch.ones(4, 1)

    def script(watch):
        for _ in range(6):
            optimizer.zero_grad()
            F.mse_loss(model(x), 0 * x).backward()
            optimizer.step()

    run = follow(model, optimizer, script)
    assert (run.series("weight", "update_cosine")["mean"][2:] < -0.9).all()


def test_weight_decay_too_strong(follow):
    model = mlp()
    optimizer = sgd(model, 0.1, weight_decay=5.0)
    run = follow(model, optimizer, train(model, optimizer, batches(4)))
    (groups,) = events(run, "groups")
    assert groups.data["type"] == "SGD"
    decay = groups.data["groups"][0]["weight_decay"]
    weights = run.series("0.weight", "params")["rms"]
    updates = run.series("0.weight", "updates")["rms"]
    assert np.allclose(updates, 0.1 * decay * weights, rtol=0.2)


def test_clipping_too_tight(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for x, y in batches(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optimizer.step()

    run = follow(model, optimizer, script)
    assert (loop(run, "grad_norm_unclipped") > 100 * loop(run, "grad_norm")).all()
    assert np.allclose(loop(run, "clip_limit"), 1e-3)


def test_adam_instability(follow):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01, eps=1e-30)
    run = follow(model, optimizer, train(model, optimizer, batches(4)))
    moment = run.series("0.weight", "second_moment")
    assert (moment["count"] > 0).all()
    expected = optimizer.state[model[0].weight]["exp_avg_sq"].reshape(-1)[:: 160 // 64][:64]
    assert np.isclose(moment["mean"][-1], expected.double().mean().item(), rtol=1e-5)
    (groups,) = events(run, "groups")
    assert groups.data["groups"][0]["eps"] == 1e-30


def test_batchnorm_small_batch(follow):
    model = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.Linear(8, 5))
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3, 2, 10)))
    assert site(run, "1")["batch"] == [2, 2, 2]


# -- symptoms -------------------------------------------------------------------------------------


def test_dead_units(follow):
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 5))
    nn.init.constant_(model[0].bias, -100.0)
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    assert site(run, "1")["activation"] == "rectifier"
    assert run.units("1", "outputs").dead_share.tolist() == [1.0] * len(run.units("1").dead_share)
    series = run.series("1", "outputs")
    assert (series["units"] == 16).all()
    assert (series["active"] == 0).all()


def test_saturated_activation(follow):
    model = mlp()
    nn.init.normal_(model[0].weight, std=100.0)
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    series = run.series("1", "outputs")
    near = (series["near_low"] + series["near_high"]) / series["bounded"]
    assert (near > 0.8).all()
    assert site(run, "1")["activation"] == "bounded"


@pytest.mark.parametrize("scale", [0.1, 5.0])
def test_vanishing_and_exploding_gradient(follow, scale):
    layers = [layer for _ in range(6) for layer in (nn.Linear(10, 10), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(10, 5))
    for each in model:
        if isinstance(each, nn.Linear):
            nn.init.orthogonal_(each.weight, scale)
    if scale > 1:
        model = nn.Sequential(*[each for each in model if isinstance(each, nn.Linear)])
    optimizer = sgd(model, 1e-6)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    last = len(model) - 1
    first_grad = run.series("0", "grads")["rms"]
    last_grad = run.series(str(last), "grads")["rms"]
    assert (
        (first_grad < 1e-3 * last_grad).all() if scale < 1 else (first_grad > 100 * last_grad).all()
    )
    assert (run.series("0.weight", "param_grads")["rms"] > 0).all()


def test_non_finite(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for at, (x, y) in enumerate(batches(4)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            (loss * torch.log(torch.tensor(0.0)) * 0 if at == 2 else loss).backward()
            optimizer.step()

    run = follow(model, optimizer, script)
    (found,) = events(run, "non-finite")
    assert found.step == 2
    nan = run.series("0.weight", "param_grads")["nan"]
    assert nan[0] == 0
    assert nan[2] > 0


def test_class_collapse(follow):
    model = mlp()
    nn.init.zeros_(model[2].weight)
    model[2].bias.data = torch.tensor([9.0, 0, 0, 0, 0])
    optimizer = sgd(model, 1e-6)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    data = record(run)
    assert data["argmax_counts"][0] == 8
    assert sum(data["class_counts"]) == 8
    assert max(data["class_counts"]) < 8


def test_not_learning_and_overfitting(follow):
    model = mlp()
    optimizer = sgd(model)
    (held,) = batches(1, 16, 10)

    def script(watch):
        for x, y in batches(6):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(held[0]), held[1])
            model.train()
            watch.log(accuracy=0.5)

    run = follow(model, optimizer, script)
    (name,) = run.info["losses"]
    assert len(run.scalars[f"loss:{name}"].value) == 6
    (evaluated,) = {loss.name for loss in run.losses if loss.phase == "eval"}
    series = run.series(f"@loss:{evaluated}", "loss", phase="eval")
    assert len(series) == 6
    assert np.isfinite(series["mean"]).all()
    assert run.info["totals"]["evaluations"] == 6
    assert run.scalars["accuracy"].value.tolist() == [0.5] * 6


def test_unused_module(follow):
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(10, 5), nn.Linear(10, 5)

        def forward(self, x):
            return self.used(x)

    model = Idle()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3)))
    assert site(run, "idle")["calls"] == {"train": 0, "eval": 0, "aux": 0}
    assert "first_call" not in site(run, "idle")
    assert site(run, "idle.weight")["with_grad"] == 0


def test_replica_divergence(follow):
    torch.manual_seed(0)
    model = mlp()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(5)))
    mark = run.scalars["params_fingerprint"]
    assert mark.step.tolist() == [0, 1, 2, 4]
    assert len(set(mark.value.tolist())) == 4


def test_a_parameter_that_is_frozen_on_the_way_is_told(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        for at, (x, y) in enumerate(batches(6)):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            if at == 4:
                model[0].weight.requires_grad_(False)

    run = follow(model, optimizer, script)
    (event,) = events(run, "parameters")
    assert event.data["requires_grad"] == {"0.weight": False}
    assert site(run, "0.weight")["requires_grad"] is False


def test_a_pass_over_many_batches_is_an_evaluation_also_in_training_mode(follow):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = sgd(model)
    same = torch.randn(8, 4)

    def script(watch):
        for batches_ in (
            [torch.randn(8, 4) for _ in range(3)],  # right answers are counted, say
            [same] * 5,  # dropout asked five times about one batch
            [torch.randn(1, 4) for _ in range(5)],  # states of an environment
            [torch.randn(8, 4) for _ in range(3)],
        ):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).sum().backward()
            optimizer.step()
            with torch.no_grad():
                for each in batches_:
                    model(each).argmax(1)

    run = follow(model, optimizer, script)
    assert run.info["totals"]["evaluations"] == 2
    assert site(run, "1")["calls"] == {"train": 4, "eval": 6, "aux": 10}


@pytest.mark.parametrize("cleared", [True, False])
def test_gradients_are_old_only_where_a_step_uses_them(follow, cleared):
    body, head = nn.Linear(4, 4), nn.Linear(4, 2)
    model = nn.Sequential(body, head)
    optimizers = [sgd(body), sgd(head)]

    def script(watch):
        for _ in range(4):
            for optimizer in optimizers:  # each pass adds to the gradients of both
                if cleared:
                    optimizer.zero_grad()
                model(torch.randn(8, 4)).sum().backward()
                optimizer.step()

    run = follow(model, optimizers, script)
    assert (loop(run, "old_gradients").sum() > 0) is not cleared


def test_output_misfits_loss(follow):
    model = nn.Sequential(mlp(), nn.Softmax(1))
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3), F.nll_loss))
    made = record(run)
    assert (made["kind"], made["chain"][:2]) == ("nll", ["NllLoss", "Softmax"])
    assert made["prediction"]["max"] > 0 > made["value"]
    assert made["row_sums"] == pytest.approx([1, 1])


def test_padding_dominates(follow):
    model = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 5))
    ids, tags = torch.randint(1, 9, (6, 10)), torch.randint(1, 5, (6, 10))
    ids[:, 3:], tags[:, 3:] = 0, 0

    def of_positions(scores, labels):
        return F.cross_entropy(scores.view(-1, 5), labels.view(-1))

    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, [(ids, tags)] * 3, of_positions))
    assert record(run)["padding"]["share"] == pytest.approx(0.7)
    assert record(run)["padding"]["target"] == 0


def test_unbalanced_loss_terms(follow):
    model, wanted = mlp(), torch.randn(64, 5)

    def both(output, labels):
        return 100 * F.mse_loss(output, wanted[: len(labels)]) + F.cross_entropy(output, labels)

    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(3), both))
    made = record(run)
    assert [part["kinds"] for part in made["parts"]] == [["cross_entropy"], ["mse"]]
    values = [
        part["factor"] * value
        for part, value in zip(made["parts"], made["part_values"], strict=True)
    ]
    assert sum(values) == pytest.approx(made["value"], rel=1e-5)
    seen = wanted[: made["prediction"]["shape"][0]]
    assert made["part_constants"][1] == pytest.approx(seen.var(0).mean().item(), rel=1e-5)


def test_unshuffled_data(follow):
    model = mlp()
    data = [(x, torch.full_like(y, at // 3)) for at, (x, y) in enumerate(batches(6))]
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, data))
    assert len(run.losses) > 3
    for loss in run.losses:
        assert np.argmax(loss.data["class_counts"]) == loss.step // 3


def test_unshuffled_data_of_a_loss_by_hand(follow):
    by_hand = [(x, 10.0 * at + torch.randn(len(x), 5)) for at, (x, _) in enumerate(batches(4))]

    def squares(output, y):
        return ((output - y) ** 2).mean()

    other = mlp()
    optimizer = sgd(other)
    run = follow(other, optimizer, train(other, optimizer, by_hand, squares))
    for loss in run.losses:
        wanted = by_hand[loss.step][1].mean().item()
        assert loss.data["target"]["mean"] == pytest.approx(wanted, abs=1e-3)


def test_evaluation_scale(follow):
    model = mlp()
    optimizer = sgd(model)

    def script(watch):
        train(model, optimizer, batches(4))(watch)
        model.eval()
        with torch.no_grad():
            for x, _ in batches(3):
                model(255 * x)

    run = follow(model, optimizer, script)
    sizes = [run.series("", "inputs", phase=phase)["std"].mean() for phase in ("train", "eval")]
    assert sizes[1] > 100 * sizes[0]


def test_target_not_normalized(follow):
    model = nn.Linear(4, 1)
    optimizer = sgd(model, 1e-9)
    x = torch.randn(80, 8, 4)
    data = [(rows, 5000 + 100 * rows[:, :1]) for rows in x]
    run = follow(model, optimizer, train(model, optimizer, data, F.mse_loss))
    record = run.losses[0].data
    assert record["kind"] == "mse"
    assert record["target"]["mean"] == pytest.approx(5000, rel=0.1)
    assert abs(record["prediction"]["mean"]) < 10
    assert "target-not-normalized" in {finding.code for finding in nethook.diagnose(run)}


def test_shared_layers(follow):
    model = nn.Sequential(*[nn.Linear(10, 10)] * 3, nn.Linear(10, 5))
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(6)))
    assert site(run, "0")["names"] == ["0", "1", "2"]
    assert "shared-layers" in {finding.code for finding in nethook.diagnose(run)}


def test_update_below_precision(follow):
    torch.manual_seed(0)  # the rule asks whether the loss falls, which is a matter of luck here
    model = mlp().to(torch.bfloat16)
    optimizer = sgd(model, 1e-6)
    data = [(x.to(torch.bfloat16), y) for x, y in batches(120)]
    run = follow(model, optimizer, train(model, optimizer, data))
    updates = run.series("0.weight", "updates")
    assert site(run, "0.weight")["dtype"] == "bfloat16"
    assert updates["zero_share"].min() > 0.95
    found = nethook.diagnose(run, ignore=["learning-rate-too-low"])  # which it is as well
    assert "update-below-precision" in {finding.code for finding in found}


def test_bottleneck_too_narrow(follow):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(10, 1), nn.Tanh(), nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 5)
    )
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(120)))
    linear = [at for at, op in enumerate(run.info["ops"]) if op["op"] == "linear"]
    first, second = (run.info["ops"][at] for at in linear[:2])
    (between,) = run.info["ops"][linear[0] + 1 : linear[1]]
    assert (first["site"], between["from"], second["from"]) == ("0", [linear[0]], [linear[0] + 1])
    assert site(run, "0.weight")["shape"] == [1, 10]
    assert site(run, "2.weight")["shape"] == [16, 1]
    assert "bottleneck-too-narrow" in {finding.code for finding in nethook.diagnose(run)}


RESTORES_NOTHING = """
import torch
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 16), nn.Linear(16, 8))

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(30):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
state = model.state_dict()
model = Net().eval()
with torch.no_grad():
    model(torch.randn(16, 8))
"""


def test_weights_not_restored(tmp_path):
    """Who else is called is seen where a whole script is followed."""
    (tmp_path / "train.py").write_text(RESTORES_NOTHING)
    path = tmp_path / "run.db"
    done = under("train.py", ours=("--to", str(path)), cwd=tmp_path)
    assert done.code == 0, done.err
    run = nethook.open_run(path)
    assert run.info["untrained_twins"] == [{"kind": "Net", "weights": 2}]
    assert "weights-not-restored" in {finding.code for finding in nethook.diagnose(run)}


EXAMINED = (
    "samples_mixed", "target_misaligned", "sees_the_future", "target_shifted", "target_is_input",
    "random_evaluation", "missing_terminal_mask", "padding_read",
    "axes_scrambled", "softmax_over_one", "term_without_gradient", "position_ignored",
)  # fmt: skip


def test_what_examinations_show(follow, monkeypatch):
    # Under load a process may get little of the processor in the usual time.
    monkeypatch.setattr(limits, "LEAST", 60.0)
    monkeypatch.setattr(limits, "MOST", 60.0)
    monkeypatch.setattr(limits.Deadline.__init__, "__defaults__", (60.0,))
    # Other tests of this process may have compiled something.
    monkeypatch.setattr("nethook.examining.keeping.compiled_frames", lambda: 0)

    class Mixes(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(10, 8), nn.Linear(8, 5)

        def forward(self, x):
            return self.last(F.dropout(torch.softmax(self.first(x), dim=0), 0.5))

    model = Mixes()
    optimizer = sgd(model)
    run = follow(model, optimizer, train(model, optimizer, batches(6)), examine=True)
    by_name = {result["experiment"]: result for result in run.info["examined"]}
    mixed = by_name["samples are independent"]
    assert mixed["outcome"] in ("found", "question")
    assert mixed["facts"]["others"] > 0.001
    assert by_name["evaluation repeats itself"]["facts"]["operation"] == "F.dropout"
    others = ("predictions line up with targets", "no look ahead", "what the target is")
    for name in others:  # a batch of vectors has no positions
        assert by_name[name]["outcome"] in ("fine", "not applicable")
        assert by_name[name]["outcome"] == "fine" or by_name[name]["reason"]


def test_every_rule_of_the_doctor_has_a_test_here():
    from nethook.doctor.rules import own_rules

    written = " ".join(name for name in globals() if name.startswith("test_"))
    together = {
        "learning_rate_too_high": "learning_rate_too_high_or_too_low",
        "learning_rate_too_low": "learning_rate_too_high_or_too_low",
        "vanishing_gradient": "vanishing_and_exploding_gradient",
        "exploding_gradient": "vanishing_and_exploding_gradient",
        "input_collapsed": "input_collapsed_and_input_ignored",
        "not_learning": "not_learning_and_overfitting",
        "doubtful_result": "not_learning_and_overfitting",
        "overfitting": "not_learning_and_overfitting",
        **dict.fromkeys(EXAMINED, "what_examinations_show"),
    }
    codes = [rule.code.replace("-", "_") for rule in own_rules()]
    assert len(codes) > 35
    assert [code for code in codes if together.get(code, code) not in written] == []
