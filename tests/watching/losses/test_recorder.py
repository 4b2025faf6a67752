"""The loss record, driven as the watch drives it: marked outputs, then the roots of a backward."""

from __future__ import annotations

import gc
import math
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from nethook.addresses.paths import Item
from nethook.hooks.modes import quiet
from nethook.watching.clock.calls import Calls
from nethook.watching.losses import recorder as losses_module
from nethook.watching.losses.marks import OUTPUT_MARK, OutputMark
from nethook.watching.losses.recorder import WAYS, Losses
from tests.watching.fakes import Raising, schedule


class Watching:
    """What the watch offers to the loss record, written down."""

    guard = Raising()

    def __init__(self) -> None:
        self.step = 0
        self.phase = "train"
        self.schedule = schedule()
        self.clock = SimpleNamespace(calls=Calls())
        self.counted: list[tuple[Any, Any, bool]] = []  # samples, divisor, summed
        self.values: list[tuple[str, Any, str]] = []
        self.records: list[tuple[str, dict[str, Any], str]] = []

    def trained(self, name: str, batch: Any, phase: str = "train") -> None:
        self.values.append((name, batch.value, phase))
        self.counted.append((batch.samples, batch.divisor, batch.summed))

    def evaluated(self, name: str, batch: Any) -> None:
        self.trained(name, batch, "eval")

    def loss_record(self, name: str, data: Any, phase: str) -> None:
        self.records.append((name, dict(data), phase))


def mark(output: torch.Tensor, model: str = "") -> torch.Tensor:
    output.grad_fn.metadata[OUTPUT_MARK] = OutputMark(model)
    return output


X = torch.linspace(-1, 1, 32).reshape(8, 4)
CLASSES = torch.tensor([0, 1, 2, 3, 4, 0, 1, 1])
TARGET = torch.linspace(0, 1, 40).reshape(8, 5)
CHANCES = TARGET.softmax(1)


def network() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(4, 5)


def record(loss, model=None, scale=None) -> dict[str, Any]:
    """The record of `loss(output)`."""
    watching = Watching()
    root = loss(mark((network() if model is None else model)(X)))
    Losses(watching, watching).backward([root], scale)
    root.sum().backward()
    assert len(watching.records) == 1
    if root.dim() == 0:
        expected = root.item() / (1 if scale is None else float(scale))
        assert watching.values == [(watching.records[0][0], expected, "train")]
        assert watching.records[0][1]["value"] == expected
    return watching.records[0][1]


def squared(x: torch.Tensor) -> torch.Tensor:
    return x * x


def names(found: dict[str, Any]) -> str:
    return " ← ".join(found["chain"])


@pytest.mark.parametrize(
    ("kind", "loss", "chain"),
    [
        ("cross_entropy", lambda o: F.cross_entropy(o, CLASSES), "NllLoss ← LogSoftmax ← Addmm"),
        ("cross_entropy", lambda o: F.cross_entropy(o, CHANCES), None),
        ("nll", lambda o: F.nll_loss(o, CLASSES), "NllLoss ← Addmm"),
        ("mse", lambda o: F.mse_loss(o, TARGET), "MseLoss ← Addmm"),
        ("mse", lambda o: ((o - TARGET) ** 2).mean(), "Pow ← Sub ← Addmm"),
        ("l1", lambda o: F.l1_loss(o, TARGET), "Abs ← Sub ← Addmm"),
        ("smooth_l1", lambda o: F.smooth_l1_loss(o, TARGET), "SmoothL1Loss ← Addmm"),
        ("huber", lambda o: F.huber_loss(o, TARGET), "HuberLoss ← Addmm"),
        (
            "bce",
            lambda o: F.binary_cross_entropy(o.sigmoid(), TARGET),
            "BinaryCrossEntropy ← Sigmoid ← Addmm",
        ),
        (
            "bce_with_logits",
            lambda o: F.binary_cross_entropy_with_logits(o, TARGET),
            "BinaryCrossEntropyWithLogits ← Addmm",
        ),
        ("kl_div", lambda o: F.kl_div(o.log_softmax(1), CHANCES, reduction="batchmean"), None),
        ("kl_div", lambda o: F.kl_div(o.softmax(1), CHANCES, reduction="batchmean"), None),
        ("other", lambda o: (1 - (o.softmax(1) * CHANCES).sum(1)).mean(), None),
        ("multi_margin", lambda o: F.multi_margin_loss(o, CLASSES), "MultiMarginLoss ← Addmm"),
        ("soft_margin", lambda o: F.soft_margin_loss(o, TARGET.sign()), "SoftMarginLoss ← Addmm"),
        (
            "ctc",
            lambda o: F.ctc_loss(
                o[:, None].log_softmax(2),
                torch.tensor([[1, 2]]),
                torch.tensor([8]),
                torch.tensor([2]),
            ),
            None,
        ),
        ("linear", lambda o: -o.mean(), "Addmm"),
        ("squares", lambda o: o.square().mean(), "Pow ← Addmm"),
        ("other", lambda o: o.exp().sum(), "Exp ← Addmm"),
    ],
)
def test_the_kind_and_the_chain_from_the_loss_to_the_output(kind, loss, chain):
    found = record(loss)
    assert found["kind"] == kind
    assert (found["model"], found["path"]) == ("", "")
    assert found["chain"][-1] == "Addmm"
    if chain is not None:
        assert names(found) == chain


def test_a_double_softmax_is_in_the_chain_and_its_rows_sum_to_one():
    found = record(lambda o: F.cross_entropy(o, CLASSES), nn.Sequential(network(), nn.Softmax(1)))
    assert names(found) == "NllLoss ← LogSoftmax ← Softmax"
    assert found["inside"] == ["Addmm"]
    assert found["row_sums"] == pytest.approx([1, 1], abs=1e-6)
    assert 0 <= found["given"]["min"] <= found["given"]["max"] <= 1


def test_a_model_that_ends_in_log_softmax_has_a_likelihood():
    model = nn.Sequential(network(), nn.LogSoftmax(1))
    found = record(lambda o: F.nll_loss(o, CLASSES), model)
    assert found["kind"] == "nll"
    assert names(found) == "NllLoss ← LogSoftmax"
    assert found["inside"] == ["Addmm"]


@pytest.mark.parametrize(
    ("loss", "factor", "reduction"),
    [
        (lambda o: F.mse_loss(o, TARGET), 1.0, "mean"),
        (lambda o: F.mse_loss(o, TARGET, reduction="sum"), 1.0, "sum"),
        (lambda o: F.mse_loss(o, TARGET, reduction="none").mean(), 1.0, "mean"),
        (lambda o: F.mse_loss(o, TARGET) / 4, 0.25, "mean"),
        (lambda o: 0.5 * F.mse_loss(o, TARGET), 0.5, "mean"),
        (lambda o: -F.mse_loss(o, TARGET) / 2, -0.5, "mean"),
        (lambda o: 1 - F.mse_loss(o, TARGET), -1.0, "mean"),
        (lambda o: F.cross_entropy(o, CHANCES), 1.0, "mean"),
        (lambda o: F.cross_entropy(o, CHANCES) / 4, 0.25, "mean"),
        (lambda o: F.kl_div(o.log_softmax(1), CHANCES, reduction="batchmean"), 1.0, "mean"),
        (lambda o: F.kl_div(o.log_softmax(1), CHANCES, reduction="sum") / 4, 0.25, "sum"),
        (lambda o: F.cross_entropy(o, CLASSES, label_smoothing=0.1) / 4, 0.25, "mean"),
    ],
)
def test_division_sign_and_reduction(loss, factor, reduction):
    found = record(loss)
    assert found["factor"] == pytest.approx(factor)
    assert found["reduction"] == reduction
    assert found["negated"] is (factor < 0)
    assert found["floored"]
    divided = None if abs(factor) == 1 else pytest.approx(1 / abs(factor))
    assert found["divided_by"] == divided


@pytest.mark.parametrize("scale", [torch.tensor(1024.0), 1024.0])
def test_the_factor_of_a_loss_scaler_is_taken_out(scale):
    found = record(lambda o: F.mse_loss(o, TARGET) / 2 * scale, scale=scale)
    assert found["factor"] == 0.5
    assert found["scale"] == 1024.0
    assert found["outside"] == ["Mul", "Div"]


@pytest.mark.parametrize("weight", [None, torch.rand(5)])
@pytest.mark.parametrize("smoothing", [0.05, 0.1, 0.4])
def test_label_smoothing_is_an_option_and_not_a_second_loss(smoothing, weight):
    found = record(lambda o: F.cross_entropy(o, CLASSES, weight=weight, label_smoothing=smoothing))
    assert found["kind"] == "cross_entropy"
    assert found["options"]["label_smoothing"] == pytest.approx(smoothing)
    assert found["terms"] == []
    assert found["factor"] == 1.0


def test_options_of_the_function():
    found = record(lambda o: F.cross_entropy(o, CLASSES, weight=torch.ones(5), ignore_index=3))
    assert found["options"] == {"ignore_index": 3, "weight": True}
    assert record(lambda o: F.huber_loss(o, TARGET, delta=2.0))["options"] == {"delta": 2.0}


def test_several_losses_and_penalties_are_terms():
    model = network()
    found = record(
        lambda o: (
            F.cross_entropy(o, CLASSES)
            + 0.5 * F.mse_loss(o, TARGET)
            + 0.01 * model.weight.pow(2).sum()
            + 0.02 * model.bias.abs().sum()
        ),
        model,
    )
    assert found["kind"] == "cross_entropy"
    assert sorted((term["kind"], term["factor"]) for term in found["terms"]) == [
        ("cross_entropy", 1.0),
        ("mse", 0.5),
        ("penalty", 0.01),
        ("penalty", 0.02),
    ]
    assert found["penalties"] == 2


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    "loss",
    [
        lambda o, y: F.mse_loss(o, y),
        lambda o, y: F.smooth_l1_loss(o, y),
        lambda o, y: F.huber_loss(o, y),
    ],
)
@pytest.mark.parametrize(("first", "second"), [((8, 1), (8,)), ((8,), (8, 1)), ((8, 5), (5,))])
def test_two_shapes_that_were_broadcast_to_a_third(loss, first, second):
    found = record(lambda o: loss(o.flatten()[: math.prod(first)].view(first), torch.rand(second)))
    assert found["prediction"]["shape"] == list(first)
    assert found["target"]["shape"] == list(second)
    assert found["broadcast"] is True
    assert found["broadcast_to"] == list(torch.broadcast_shapes(first, second))


@pytest.mark.parametrize(
    "loss",
    [
        lambda o, y: ((o - y) ** 2).mean(),
        lambda o, y: (o - y).square().mean(),
        lambda o, y: (y - o).abs().mean(),
        lambda o, y: squared(o - y).mean(),
    ],
)
def test_broadcast_in_a_loss_written_by_hand(loss):
    found = record(lambda o: loss(o[:, :1], torch.rand(8)))
    assert found["prediction"]["shape"] == [8, 1]
    assert (found["broadcast"], found["broadcast_to"]) == (True, [8, 8])
    assert record(lambda o: loss(o[:, 0], torch.rand(8)))["broadcast"] is False


def test_a_loss_that_the_model_returns_itself():
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x):
            logits = self.inner(x)
            return F.cross_entropy(logits.float(), CLASSES), logits

    watching = Watching()
    loss, logits = WithLoss()(X)
    loss.grad_fn.metadata[OUTPUT_MARK] = OutputMark("", (Item(0),))
    logits.grad_fn.metadata[OUTPUT_MARK] = OutputMark("", (Item(1),))
    Losses(watching, watching).backward([loss / 2], None)
    [(_, found, _)] = watching.records
    assert (found["model"], found["path"]) == ("", "[1]")
    assert found["kind"] == "cross_entropy"
    assert found["factor"] == 0.5


def test_without_a_marked_output_the_chain_is_what_there_is():
    watching = Watching()
    Losses(watching, watching).backward([F.mse_loss(network()(X).relu(), TARGET)], None)
    [(_, found, _)] = watching.records
    assert names(found) == "MseLoss ← Relu ← Addmm"
    assert "model" not in found


def test_a_compiled_model():
    torch.compiler.reset()  # of one function torch compiles only so many variants in a process
    found = record(
        lambda o: F.cross_entropy(o, CLASSES), torch.compile(network(), backend="aot_eager")
    )
    assert names(found) == "NllLoss ← LogSoftmax ← CompiledFunction"
    assert found["class_counts"] == torch.bincount(CLASSES, minlength=5).tolist()


def test_a_root_that_is_no_number_and_one_without_a_graph():
    watching = Watching()
    recorder = Losses(watching, watching)
    recorder.backward([mark(network()(X)), torch.ones((), requires_grad=True)], None)
    assert watching.values == []
    assert [data["value"] for _, data, _ in watching.records] == [None]


# -- which loss it is ------------------------------------------------------------------------------


def test_two_lines_are_two_losses_and_each_keeps_its_name():
    watching = Watching()
    recorder = Losses(watching, watching)
    for _ in range(3):
        output = mark(network()(X))
        recorder.backward([F.mse_loss(output, TARGET)], None)
        recorder.backward([F.mse_loss(output, -TARGET)], None)
    used = [name for name, _, _ in watching.values]
    assert used[0] != used[1]
    assert used == used[:2] * 3
    assert all(name.startswith("test_recorder.py:") for name in used)


def test_another_way_on_the_same_line_is_another_loss_until_there_are_too_many():
    watching = Watching()
    recorder = Losses(watching, watching)
    for power in range(2 * WAYS):
        loss = F.mse_loss(mark(network()(X)), TARGET)
        for _ in range(power):
            loss = loss.exp()
        recorder.backward([loss], None)
    used = [name for name, _, _ in watching.values]
    assert len(set(used)) == WAYS
    assert used[WAYS:] == [used[WAYS - 1]] * WAYS
    assert used[1] == f"{used[0]}#1"


def test_the_graph_is_looked_at_in_full_only_when_it_changed_or_samples_are_taken(monkeypatch):
    looked = []
    whole = losses_module.analyse
    monkeypatch.setattr(
        losses_module, "analyse", lambda *a, **k: looked.append(1) or whole(*a, **k)
    )
    watching = Watching()
    watching.schedule.samples = False
    recorder = Losses(watching, watching)

    def step(loss):
        before = len(looked)
        recorder.backward([loss(mark(network()(X)))], None)
        watching.step += 1
        return len(looked) - before

    assert step(lambda o: F.mse_loss(o, TARGET)) > 0
    assert [step(lambda o: F.mse_loss(o, TARGET)) for _ in range(3)] == [0, 0, 0]
    assert step(lambda o: F.mse_loss(o.relu(), TARGET)) > 0
    assert [step(lambda o: F.mse_loss(o.relu(), TARGET)) for _ in range(3)] == [0, 0, 0]
    watching.schedule.samples = True
    assert step(lambda o: F.mse_loss(o, TARGET)) > 0
    assert len(watching.records) == 3
    assert len(watching.values) == 9


def test_of_micro_batches_the_first_is_sampled():
    watching = Watching()
    recorder = Losses(watching, watching)
    for watching.step in (0, 1):
        for _ in range(4):
            recorder.backward([F.mse_loss(mark(network()(X)), TARGET) / 4], None)
    assert (len(watching.records), len(watching.values)) == (2, 8)


def test_records_become_fewer_as_the_run_goes_on():
    watching = Watching()
    recorder = Losses(watching, watching)
    for watching.step in range(300):
        recorder.backward([F.mse_loss(mark(network()(X)), TARGET)], None)
    assert len(watching.values) == 300
    assert 12 < len(watching.records) < 30


# -- an observer -----------------------------------------------------------------------------------


def test_nothing_of_the_graph_is_kept():
    recorder = Losses(made := Watching(), made)
    output = mark(network()(X))
    loss = F.mse_loss(output, TARGET.clone())
    kept = weakref.ref(loss.grad_fn._saved_target.untyped_storage())
    alive = weakref.ref(output)
    recorder.backward([loss], None)
    del output, loss
    gc.collect()
    assert alive() is None
    assert kept() is None


def test_hooks_for_saved_tensors_are_not_run():
    unpacked = []

    def unpack(tensor):
        unpacked.append(1)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = F.cross_entropy(mark(network()(X)), CLASSES)
    watching = Watching()
    Losses(watching, watching).backward([loss], None)
    assert unpacked == []
    [(_, found, _)] = watching.records
    assert (found["kind"], "target" in found) == ("cross_entropy", False)


def test_a_checkpointed_loss_is_not_computed_anew():
    calls = []

    def loss(output):
        calls.append(1)
        return F.cross_entropy(output, CLASSES)

    root = checkpoint(loss, mark(network()(X)), use_reentrant=False)
    Losses(made := Watching(), made).backward([root], None)
    assert len(calls) == 1
    root.backward()
    assert len(calls) == 2


def test_a_graph_that_was_freed_and_one_that_was_written():
    watching = Watching()
    recorder = Losses(watching, watching)
    loss = F.mse_loss(mark(network()(X)), TARGET)
    loss.backward()
    recorder.backward([loss], None)
    target = TARGET.clone()
    written = F.mse_loss(mark(network()(X)), target)
    target.zero_()
    recorder.backward([written], None)
    assert [data["kind"] for _, data, _ in watching.records] == ["mse", "mse"]
    assert "target" not in watching.records[0][1]


def test_gradients_random_state_and_modes_are_as_without():
    def gradient(observed):
        class Counting(TorchFunctionMode):
            calls = 0

            def __torch_function__(self, func, types, args=(), kwargs=None):
                Counting.calls += 1
                return func(*args, **(kwargs or {}))

        model = network()
        torch.manual_seed(1)
        with Counting():
            loss = F.cross_entropy(mark(F.dropout(model(X))), CLASSES)
            before = Counting.calls
            if observed:
                with quiet():  # as the wrapper of `backward` does where a mode is active
                    Losses(made := Watching(), made).backward([loss], None)
            assert Counting.calls == before
            loss.backward()
        return model.weight.grad, torch.get_rng_state()

    for seen, unseen in zip(gradient(True), gradient(False), strict=True):
        assert torch.equal(seen, unseen)


# -- passes without gradient -----------------------------------------------------------------------


def test_a_call_without_gradient_gives_the_numbers_of_one_with():
    output = network()(X)
    with_graph = record(lambda o: F.cross_entropy(o, CLASSES))
    watching = Watching()
    recorder = Losses(watching, watching)
    with torch.no_grad():
        value = F.cross_entropy(output, CLASSES)
        args = (output, CLASSES, None, 1, -100, 0.0)
        assert recorder.no_grad_loss("cross_entropy", args, {}, value)
    [(name, found, phase)] = watching.records
    assert watching.values == [(name, value.item(), "eval")]
    assert phase == "eval"
    assert found["target"] == with_graph["target"]
    for key in ("accuracy", "argmax_counts", "class_counts", "reduction", "floored"):
        assert found[key] == with_graph[key]
    for key in ("entropy", "confidence", "class_entropy"):
        assert found["prediction"][key] == pytest.approx(with_graph["prediction"][key], abs=1e-6)


@pytest.mark.parametrize("returned", ["divided", "nothing"])
def test_a_sum_is_what_the_model_makes_of_it(returned: str) -> None:
    """transformers: `cross_entropy(reduction="sum") / num_items`, inside of the model."""
    watching = Watching()
    recorder = Losses(watching, watching)
    target = CLASSES.clone()
    target[:2] = -100
    with torch.no_grad():
        output = network()(X)
        summed = F.cross_entropy(output, target, reduction="sum")
        watching.clock.calls.begins("")
        args = (output, target, None, 2, -100, 0.0)
        assert recorder.no_grad_loss("cross_entropy", args, {}, summed)
        assert not watching.values  # it waits for what the model returns
        watching.clock.calls.ends()
        loss = summed / 8  # the model counts two that are left out
        made = {"loss": loss, "logits": output} if returned == "divided" else output
        recorder.call_ends("", nn.Identity(), None, made)
    [(_, value, phase)] = watching.values
    expected = loss if returned == "divided" else summed
    assert (value, phase) == (expected.item(), "eval")
    assert watching.counted == [(6.0, None, returned == "nothing")]


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("nll", (CHANCES.log(), CLASSES, None, 1, -100)),
        ("mse", (X, X, 1)),
        ("l1", (X, X, 0)),
        ("bce", (CHANCES, TARGET, None, 1)),
        ("bce_with_logits", (TARGET, CHANCES, None, None, 2)),
        ("kl_div", (CHANCES.log(), CHANCES, 2)),
        ("multi_margin", (TARGET, CLASSES, 1, 1.0, None, 1)),
        ("cosine_embedding", (X, X, torch.ones(8), 0.0, 1)),
        ("triplet_margin", (X, X, X, 1.0, 2.0, 1e-6, False, 1)),
        ("ctc", (CHANCES[:, None].log(), torch.tensor([[1, 2]]), (8,), (2,), 0, 1, False)),
    ],
)
def test_every_kind_of_call(kind, args):
    watching = Watching()
    result = torch.rand(8) if kind == "l1" else torch.rand(())
    assert Losses(watching, watching).no_grad_loss(kind, args, {}, result)
    [(_, found, _)] = watching.records
    assert found["kind"] == kind
    assert watching.values[0][1] == pytest.approx(result.mean().item())
    assert found["prediction"]["shape"] == list(args[0].shape)


def test_a_pass_gives_one_record_and_many_passes_ever_fewer():
    watching = Watching()
    recorder = Losses(watching, watching)
    for watching.step in range(200):
        for _ in range(2):
            recorder.no_grad_loss("mse", (X, X, 1), {}, torch.zeros(()))
    assert len(watching.values) == 400
    assert 12 < len(watching.records) < 40


def test_what_is_no_loss():
    assert not Losses(made := Watching(), made).no_grad_loss("mse", (X, X), {}, None)
