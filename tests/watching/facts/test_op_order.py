"""The operations of one training call, in order, and where each has its operands from."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

import nethook


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = self.fc(x)
        return torch.relu(left) + left * 2


def ops_of(model, folder, *, train: bool = True) -> list | None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=folder / "run.db") as watch:
        watch.be_silent()
        for _ in range(2):
            with torch.set_grad_enabled(train):
                loss = F.mse_loss(model(torch.ones(2, 3)), torch.zeros(2, 3))
            if train:
                loss.backward()
                optimizer.step()
    with nethook.open_run(folder / "run.db") as run:
        return run.info.get("ops")


def test_operations_say_from_which_others_they_come(tmp_path):
    ops = ops_of(Branches(), tmp_path)
    assert [op["op"] for op in ops] == ["linear", "relu", "mul", "add"]
    assert [op["from"] for op in ops] == [[], [0], [0], [1, 2]]
    assert [op["site"] for op in ops] == ["fc", "", "", ""]


def test_linear_operations_are_marked(tmp_path):
    ops = ops_of(Branches(), tmp_path)
    assert [bool(op.get("linear")) for op in ops] == [True, False, True, True]


def test_a_product_of_two_computed_tensors_is_not_linear(tmp_path):
    class Gate(Branches):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left = self.fc(x)
            return left * left.sigmoid()

    ops = ops_of(Gate(), tmp_path)
    assert [(op["op"], bool(op.get("linear"))) for op in ops] == [
        ("linear", True), ("sigmoid", False), ("mul", False),
    ]  # fmt: skip


def test_a_tensor_subclass_sees_only_what_the_model_does(tmp_path):
    seen = []

    class Logs(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    class Wraps(Branches):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.fc(x).as_subclass(Logs)).as_subclass(torch.Tensor)

    assert [op["op"] for op in ops_of(Wraps(), tmp_path)] == ["linear", "tanh"]
    assert set(seen) == {"tanh"}


def test_without_training_there_is_none(tmp_path):
    assert ops_of(Branches(), tmp_path, train=False) is None


def test_the_hooks_go_after_the_first_step(tmp_path):
    model = Branches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db") as watch:
        watch.be_silent()
        counts = []
        for _ in range(3):
            model(torch.ones(2, 3)).sum().backward()
            counts.append(len(nethook.audit(model).ours))
            optimizer.step()
        counts.append(len(nethook.audit(model).ours))
    assert counts[0] > counts[1] >= counts[2]


def test_operations_say_whether_a_tensor_came_from_nowhere(tmp_path):
    class Odd(Branches):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left = self.fc(x * torch.arange(3))  # inputs, parameters, what was made on the way
            return left.data * 2 + self.fc(x)

    ops = ops_of(Odd(), tmp_path)
    assert [op["op"] for op in ops if op["odd"]] == ["mul"]
    assert [op["odd"] for op in ops][-3:] == [True, False, False]


def test_weights_that_are_read_through_data_are_named(tmp_path):
    class Through(Branches):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            own = torch.zeros(3)
            return x @ self.fc.weight.data.t() + self.fc.bias + own

    (*ops,) = ops_of(Through(), tmp_path)
    assert [op.get("data_of") for op in ops if op.get("data_of")] == [["fc.weight"]]
