"""Recorded numbers against the tensors themselves, read with hooks written by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from tests.watching.loops import LOOPS, batches, mlp
from tests.watching.patient import patient  # noqa: F401 - used by every test

pytestmark = pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")


class Hand:
    """Keeps every tensor of a run: by step, quantity and address."""

    def __init__(self, models, optimizers):
        self.steps = [{}]
        self.scale = 1.0
        for prefix, model in models.items():
            for name, module in model.named_modules():
                if not list(module.children()):
                    module.register_forward_hook(self._forward(prefix + name))
            self.params = {prefix + n: p for n, p in model.named_parameters()}
            for optimizer in optimizers:
                optimizer.register_step_pre_hook(self._before(dict(self.params)))
                optimizer.register_step_post_hook(self._after(dict(self.params)))
        self.left = len(optimizers)
        self.count = len(optimizers)

    def keep(self, quantity, address, tensor):
        known = self.steps[-1].setdefault((address, quantity), [])
        known.append(tensor.detach().clone().double())

    def _forward(self, name):
        def hook(module, args, output):
            if not torch.is_grad_enabled() or torch._C._current_graph_task_id() != -1:
                return
            for each in output if isinstance(output, tuple) else (output,):
                if isinstance(each, tuple):
                    for inner in each:
                        self.keep("outputs", name, inner)
                    continue
                self.keep("outputs", name, each)
                if each.requires_grad:
                    base = each._base if each._base is not None else each
                    base.register_hook(
                        lambda g: (
                            self.keep("grads", name, g)
                            if self.scale is None
                            else self.keep("grads", name, g / self.scale)
                        )
                    )

        return hook

    def _before(self, params):
        def hook(optimizer, args, kwargs):
            held = {id(p) for group in optimizer.param_groups for p in group["params"]}
            scale = getattr(optimizer, "grad_scale", None)
            for name, p in params.items():
                if id(p) in held:
                    self.keep("params", name, p)
                    if p.grad is not None:
                        factor = 1.0 if scale is None else 1.0 / scale.item()
                        self.keep("param_grads", name, p.grad * factor)

        return hook

    def _after(self, params):
        def hook(optimizer, args, kwargs):
            held = {id(p) for group in optimizer.param_groups for p in group["params"]}
            for name, p in params.items():
                if id(p) in held:
                    before = self.steps[-1][name, "params"][-1]
                    self.keep("updates", name, p.detach().double() - before)
            self.left -= 1
            if self.left == 0:
                self.left = self.count
                self.steps.append({})

        return hook


def expected(tensors):
    x = torch.cat([each.reshape(-1) for each in tensors])
    return {
        "count": x.numel(), "mean": x.mean().item(), "rms": x.square().mean().sqrt().item(),
        "min": x.min().item(), "max": x.max().item(), "zeros": int((x == 0).sum()),
        "tensors": len(tensors),
    }  # fmt: skip


def compare(run, hand, steps, quantities):
    for step in steps:
        keys = [key for key in hand.steps[step] if key[1] in quantities]
        assert keys
        for series, key in zip(run.many(keys), keys, strict=True):
            (place,) = np.flatnonzero(
                (series.first_step <= step) & (series.last_step >= step)
            ).tolist()
            assert series.first_step[place] == series.last_step[place]
            assert series.seen[place] == 1
            wanted = expected(hand.steps[step][key])
            size = max(abs(wanted["min"]), abs(wanted["max"]), 1e-30)
            for name, value in wanted.items():
                found = series[name][place]
                assert math.isclose(found, value, rel_tol=2e-6, abs_tol=2e-6 * size), (
                    step, key, name, found, value,
                )  # fmt: skip


ALL = ("outputs", "grads", "params", "param_grads", "updates")


@pytest.mark.parametrize(
    ("name", "chosen", "quantities"),
    [
        ("cnn_sgd", (0, 1, 7), ALL),
        ("mlp_momentum", (0, 3, 9), ALL),
        ("mlp_adamw", (0, 1, 2, 9), ALL),
        ("mlp_adamw_fused", (0, 5), ALL),
        ("mlp_foreach", (0, 5), ALL),
        ("lstm_clipped", (0, 4, 9), ALL),
        ("clipped_by_value", (0, 4, 9), ALL),
        ("accumulation", (0, 3, 9), ALL),
        ("autocast", (0, 5), ALL),
        ("checkpointed", (0, 5), ALL),
        ("gpt2", (0, 3), ALL),
        ("grad_scaler", (0, 1, 2), ALL),
        ("grad_scaler_fused", (0, 1, 2), ALL),
        ("penalty", (0, 3), ("outputs", "params", "param_grads", "updates")),
        ("gan", (0, 4), ALL),
        ("lbfgs", (0, 1), ("outputs", "grads", "params", "updates")),  # its gradients: below
        ("workers", (0, 4), ALL),
        ("workers_spawned", (0, 4), ALL),
    ],
)
def test_numbers_equal_those_of_the_tensors(name, chosen, quantities, tmp_path, monkeypatch):
    hands = []
    scale = torch.amp.GradScaler.scale

    def scaled(scaler, loss):
        hands[0].scale = scaler.get_scale()  # which gradients are recorded without
        return scale(scaler, loss)

    monkeypatch.setattr(torch.amp.GradScaler, "scale", scaled)

    def start(model, optimizer):
        models = (
            {f"{key}.": each for key, each in model.items()}
            if isinstance(model, dict)
            else {"": model}
        )
        optimizers = optimizer if isinstance(optimizer, list) else [optimizer]
        hand = Hand(models, []) if name == "gan" else Hand(models, optimizers)
        if name == "gan":  # of two models with an optimizer each
            hand.count = hand.left = 2
            for (prefix, each), of in zip(models.items(), optimizers, strict=True):
                params = {prefix + n: p for n, p in each.named_parameters()}
                of.register_step_pre_hook(hand._before(params))
                of.register_step_post_hook(hand._after(params))
        hands.append(hand)
        return nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None)

    torch.manual_seed(0)
    LOOPS[name](start, 10)
    run = nethook.open_run(tmp_path / "run.db")
    compare(run, hands[0], chosen, quantities)


@pytest.mark.parametrize("name", ["lbfgs", "closure_adam"])
def test_with_a_closure_gradients_are_those_after_its_first_call(name, tmp_path):
    seen = []

    def start(model, optimizer):
        def before(opt, args, kwargs):
            seen.append({"params": [p.detach().clone() for p in model.parameters()]})

        def after(opt, args, kwargs):
            seen[-1]["after"] = [p.detach().clone() for p in model.parameters()]

        def grads(root_grad):
            if seen and "grads" not in seen[-1]:
                done = seen[-1]
                torch.autograd.Variable._execution_engine.queue_callback(
                    lambda: done.setdefault("grads", [p.grad.clone() for p in model.parameters()])
                )

        model.register_forward_hook(lambda m, a, o: (o.register_hook(grads), None)[1])
        optimizer.register_step_pre_hook(before)
        optimizer.register_step_post_hook(after)
        return nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None)

    LOOPS[name](start, 9)
    run = nethook.open_run(tmp_path / "run.db")
    names = [f"{at}.{what}" for at in (0, 2) for what in ("weight", "bias")]
    for step, kept in enumerate(seen):
        for at, address in enumerate(names):
            for quantity, tensor in (
                ("params", kept["params"][at]),
                ("param_grads", kept["grads"][at]),
                ("updates", kept["after"][at] - kept["params"][at]),
            ):
                series = run.series(address, quantity)
                rms = tensor.double().square().mean().sqrt().item()
                assert math.isclose(series["rms"][step], rms, rel_tol=1e-5, abs_tol=1e-12)


def test_gradients_of_outputs_are_without_the_factor_of_a_scaler(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    (x, y) = batches(1)[0]
    kept = []
    handle = model[0].register_forward_hook(lambda m, a, o: (o.register_hook(kept.append), None)[1])
    F.cross_entropy(model(x), y).backward()
    handle.remove()
    optimizer.zero_grad()
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
    run = nethook.open_run(tmp_path / "run.db")
    rms = kept[0].double().square().mean().sqrt().item()
    assert math.isclose(run.series("0", "grads")["rms"][0], rms, rel_tol=1e-6)
    (name,) = run.info["losses"]
    loss = F.cross_entropy(model(x), y).item()
    assert math.isclose(run.scalars[f"loss:{name}"].value[0], loss, rel_tol=1e-6)
    assert run.series("@loop", "loss_scale")["mean"][0] == 4096


@pytest.mark.parametrize("kind", ["norm", "value"])
def test_what_was_clipped_is_recorded_before_and_after(kind, tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    (x, y) = batches(1)[0]
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        F.cross_entropy(model(x), y).backward()
        before = [p.grad.clone() for p in model.parameters()]
        if kind == "norm":
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        else:
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
        after = [p.grad.clone() for p in model.parameters()]
        optimizer.step()
    run = nethook.open_run(tmp_path / "run.db")

    def norm(tensors):
        return math.sqrt(sum(float(each.double().square().sum()) for each in tensors))

    names = [name for name, _ in model.named_parameters()]
    for name, a, b in zip(names, before, after, strict=True):
        raw = run.series(name, "unclipped_grads")
        assert math.isclose(raw["rms"][0], norm([a]) / math.sqrt(a.numel()), rel_tol=1e-5)
        used = run.series(name, "param_grads")
        assert math.isclose(used["rms"][0], norm([b]) / math.sqrt(b.numel()), rel_tol=1e-5)
    loop = {
        name: run.series("@loop", name)["mean"][0] for name in ("clips", "clip_limit", "grad_norm")
    }
    assert loop["clips"] == 1
    assert loop["clip_limit"] == 0.01
    assert math.isclose(loop["grad_norm"], norm(after), rel_tol=1e-5)
    if kind == "norm":
        found = run.series("@loop", "grad_norm_unclipped")["mean"][0]
        assert math.isclose(found, norm(before), rel_tol=1e-5)


def test_the_norm_of_updates_relative_to_the_weights(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    ratios, cosines, last = [], [], None
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        for x, y in batches(6):
            before = [p.detach().clone().double() for p in model.parameters()]
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            moves = [
                p.detach().double() - b for p, b in zip(model.parameters(), before, strict=True)
            ]
            size = sum(float(each.square().sum()) for each in before)
            ratios.append(math.sqrt(sum(float(each.square().sum()) for each in moves) / size))
            bias = moves[1]
            if last is not None:
                cosines.append(float(bias @ last / (bias.norm() * last.norm())))
            last = bias
    run = nethook.open_run(tmp_path / "run.db")
    assert np.allclose(run.scalars["update_ratio"].value, ratios, rtol=1e-5)
    found = run.series("0.bias", "update_cosine")["mean"]
    assert np.allclose(found[-4:], cosines[-4:], rtol=1e-4)
