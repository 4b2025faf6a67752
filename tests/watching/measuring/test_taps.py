"""The hooks on modules: what they measure, in which phase, and what they leave alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.hooks.hook import Owner
from nethook.runs import names
from nethook.watching.fail_open import Guard
from nethook.watching.measuring.taps import WatchHook, described


def test_a_tensor_is_described_by_shape_and_type():
    assert described(torch.ones(2, 3)) == {"shape": [2, 3], "dtype": "float32"}
    assert described(torch.eye(2).to_sparse())["not_measured"] == "sparse"


def test_a_hook_that_fails_is_off_and_names_itself():
    told = []
    guard = Guard(lambda part, error, trace: told.append((part, error)), lambda: None)
    guard.silent = True
    hook = WatchHook(Owner("test"), "block.fc", guard)
    hook.failed(ValueError("odd"))
    assert (hook.off, told) == (True, [("WatchHook at 'block.fc'", "ValueError: odd")])


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.lstm = nn.LSTM(3, 2)

    def forward(self, x):
        self.seen = self.fc(self.fc(x))
        return self.lstm(self.seen)[0]


def watched(folder, body, model=None, **options):
    model = model or Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    options = {"budget": None, **options}
    with nethook.watch(model, optimizer, to=folder / "run.db", **options) as watch:
        watch.be_silent()
        body(model, optimizer)
    return nethook.open_run(folder / "run.db")


def train(model, optimizer, x=None):
    model(torch.ones(4, 3) if x is None else x).sum().backward()
    optimizer.step()


def test_every_call_and_every_tensor_that_a_module_returns_is_measured(tmp_path):
    torch.manual_seed(0)
    with watched(tmp_path, train) as run:
        outputs = run.series("fc", names.OUTPUTS)
        assert outputs["tensors"].tolist() == [2]  # it is called twice
        assert outputs["count"].tolist() == [24]
        assert run.series("lstm", names.OUTPUTS)["tensors"].tolist() == [3]


def test_numbers_are_those_of_torch(tmp_path):
    outputs, grads = [], []

    def body(model, optimizer):
        handle = model.fc.register_forward_hook(lambda m, a, out: outputs.append(out.detach()))
        out = model(torch.randn(4, 3))
        model.seen.register_hook(grads.append)
        out.square().sum().backward()
        handle.remove()
        optimizer.step()

    with watched(tmp_path, body) as run:
        row = run.series("fc", names.OUTPUTS)
        both = torch.stack(outputs).double()
        assert row["mean"].item() == pytest.approx(both.mean().item())
        assert row["max"].item() == both.max().item()
        gradient = run.series("fc", names.GRADS)
        assert gradient["tensors"].tolist() == [2]
        assert gradient["max"].item() >= grads[0].max().item()


def test_a_pass_without_gradient_has_rows_of_its_own(tmp_path):
    def body(model, optimizer):
        train(model, optimizer)
        model.eval()
        with torch.no_grad():
            model(torch.full((4, 3), 100.0))

    with watched(tmp_path, body) as run:
        assert run.series("fc", names.OUTPUTS)["tensors"].tolist() == [2]
        assert run.series("fc", names.OUTPUTS, phase="eval")["tensors"].tolist() == [2]
        inputs = run.series("", names.INPUTS, phase="eval")
        assert inputs["max"].tolist() == [100.0]


def test_a_gradient_penalty_is_no_gradient_of_the_loss(tmp_path):
    def body(model, optimizer):
        x = torch.ones(4, 3, requires_grad=True)
        out = model(x)
        torch.autograd.grad(out.sum(), x, retain_graph=True)
        out.sum().backward()
        optimizer.step()

    with watched(tmp_path, body) as run:
        assert run.series("fc", names.GRADS)["tensors"].tolist() == [2]


def test_a_module_that_is_called_alone_is_measured_too(tmp_path):
    def body(model, optimizer):
        model.fc(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    with watched(tmp_path, body) as run:
        assert run.series("fc", names.OUTPUTS)["tensors"].tolist() == [1]
        assert run.info["totals"]["forwards"] == 0


def test_nothing_that_a_module_returns_is_changed_or_held(tmp_path):
    import gc
    import weakref

    refs = []

    def body(model, optimizer):
        out = model.fc(torch.ones(2, 3))
        refs.append(weakref.ref(out))
        before = out.detach().clone()
        out.sum().backward()
        assert torch.equal(out, before)
        optimizer.step()
        del out
        gc.collect()
        assert refs[0]() is None

    watched(tmp_path, body).close()


def test_a_model_that_raises_leaves_the_depth_as_it_was(tmp_path):
    class Raises(Net):
        fails = True

        def forward(self, x):
            if self.fails:
                raise RuntimeError("the script's own")
            return super().forward(x)

    def body(model, optimizer):
        with pytest.raises(RuntimeError, match="the script's own"):
            model(torch.ones(4, 3))
        model.fails = False
        train(model, optimizer)

    with watched(tmp_path, body, Raises()) as run:
        assert run.info["totals"]["steps"] == 1
        assert run.series("fc", names.OUTPUTS)["tensors"].tolist() == [2]
