"""Models that are built, changed, copied or trained while they run."""

from __future__ import annotations

import copy
import io
from collections import OrderedDict

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]

LAZY = Quiet(UserWarning, "Lazy modules are a new feature", "lazy modules are the exhibit")


def _mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


class ReplacesChild(nn.Module):
    """Puts another layer in the place of one that has just run."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.old: list[nn.Module] = []  # outside of the tree, but hooks left there would be seen

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        self.old.append(self.fc)
        self.fc = nn.Linear(4, 4)
        return self.fc(x)


class GrowsOnFirstCall(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "fc"):
            self.fc = nn.Linear(x.shape[-1], 2)
        return self.fc(x)


class CopiesItself(nn.Module):
    """Runs a deep copy of its child, made in the middle of the forward."""

    def __init__(self) -> None:
        super().__init__()
        self.child = _mlp()
        self.copies: list[nn.Module] = []

    def forward(self, x: Tensor) -> Tensor:
        self.copies.append(copy.deepcopy(self.child))
        return self.child(x) + self.copies[-1](x)


class SavesItself(nn.Module):
    """Writes its child to a file and reads it back while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.child = _mlp()
        self.loaded: list[nn.Module] = []

    def forward(self, x: Tensor) -> Tensor:
        file = io.BytesIO()
        torch.save(self.child, file)
        file.seek(0)
        # Whole modules need the unpickler; the file was written two lines above.
        self.loaded.append(torch.load(file, weights_only=False))
        return self.child(x) + self.loaded[-1](x)


class Replicates(nn.Module):
    """Makes replicas of its child as DataParallel does: they share the tables of hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.child = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        replica = self.child._replicate_for_data_parallel()
        replica.weight, replica.bias = self.child.weight, self.child.bias
        return replica(x) + self.child(x)


class ClearsHooks(nn.Module):
    """Wipes the hook tables of its child in the middle of the run, as found in forums."""

    def __init__(self, *, replace: bool) -> None:
        super().__init__()
        self.child = nn.Linear(4, 4)
        self._replace = replace

    def forward(self, x: Tensor) -> Tensor:
        x = self.child(x)
        if self._replace:
            self.child._forward_hooks = OrderedDict()
            self.child._forward_pre_hooks = OrderedDict()
        else:
            self.child._forward_hooks.clear()
            self.child._forward_pre_hooks.clear()
        return self.child(x)


def _frozen() -> nn.Module:
    model = _mlp()
    model[0].requires_grad_(False)
    return model


class Thaws(nn.Module):
    """Freezes and thaws a layer from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        first = self.fc.requires_grad_(False)(x)
        return first * self.fc.requires_grad_(True)(x)


class FlipsMode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Sequential(nn.Linear(4, 4), nn.Dropout())

    def forward(self, x: Tensor) -> Tensor:
        noisy = self.drop.train()(x)
        clean = self.drop.eval()(x)
        self.drop.train()
        return noisy - clean


def _cast_between(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    first = model.float()(x).detach()
    model.double()
    return first, model(x.double())


def _assigned_between(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    first = model(x)
    state = {name: value.clone() * 2 for name, value in model.state_dict().items()}
    model.load_state_dict(state, assign=True)  # the parameters are other objects now
    return first, model(x)


def _train(model: nn.Module, given: Given) -> object:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(given.floats(3, 4)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def _accumulate(model: nn.Module, given: Given) -> object:
    first, second = model(given.floats(3, 4)), model(given.floats(3, 4))
    (first.sum() + second.sum()).backward(retain_graph=True)  # two forwards, one backward
    second.square().sum().backward()  # and one of them a second time
    return model(given.floats(3, 4))


def _closure(model: nn.Module, given: Given) -> object:
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x = given.floats(3, 4, grad=False)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return closure().detach()


EXHIBITS = (
    Exhibit(
        "lazy_linear",
        "Parameters and class appear at the first call, by a hook that removes itself.",
        lambda: nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(2)),
        quiet=[LAZY],
    ),
    Exhibit(
        "lazy_conv",
        "Lazy convolution and batch norm: parameters and buffers appear.",
        lambda: nn.Sequential(nn.LazyConv2d(3, 3), nn.LazyBatchNorm2d(), nn.ReLU(inplace=True)),
        lambda model, given: model(given.floats(2, 2, 5, 5)),
        quiet=[LAZY],
    ),
    Exhibit("child_replaced", "A layer is replaced by another in mid-run.", ReplacesChild),
    Exhibit("child_added", "A layer appears at the first call.", GrowsOnFirstCall),
    Exhibit(
        "deep_copy_inside",
        "A forward deep-copies a child and runs the copy.",
        CopiesItself,
        no_oracle="a copy carries hand-written hooks along",
    ),
    Exhibit(
        "saved_inside",
        "A forward saves a child with torch.save and runs what it loads.",
        SavesItself,
        no_oracle="a copy carries hand-written hooks along",
    ),
    Exhibit("replicas", "Shallow replicas share the hook tables of the original.", Replicates),
    Exhibit(
        "hooks_cleared",
        "Somebody clears a module's hook tables in mid-run.",
        lambda: ClearsHooks(replace=False),
        no_oracle="it removes hand-written hooks as well",
    ),
    Exhibit(
        "hook_tables_replaced",
        "Somebody puts new hook tables in the place of the old.",
        lambda: ClearsHooks(replace=True),
        no_oracle="it removes hand-written hooks as well",
    ),
    Exhibit("frozen", "Parameters that require no gradient.", _frozen),
    Exhibit("frozen_and_thawed", "A layer that is frozen in one call and not in the next.", Thaws),
    Exhibit("mode_flipped", "Training mode changes inside of the forward.", FlipsMode),
    Exhibit(
        "cast_between",
        "The model becomes double precision between two forwards.",
        _mlp,
        _cast_between,
    ),
    Exhibit(
        "parameters_assigned",
        "`load_state_dict(assign=True)` replaces the parameters.",
        _mlp,
        _assigned_between,
    ),
    Exhibit(
        "training_steps",
        "Three steps of an optimizer inside of the scope.",
        _mlp,
        _train,
        differentiable=False,
    ),
    Exhibit(
        "closure_steps",
        "LBFGS runs forward and backward many times a step.",
        _mlp,
        _closure,
        differentiable=False,
        quiet=(
            Quiet(UserWarning, "Converting a tensor with requires_grad", "LBFGS of 2.8 does it"),
        ),
    ),
    Exhibit(
        "accumulation",
        "Several forwards before one backward, one graph used twice.",
        _mlp,
        _accumulate,
    ),
)
