"""The op-wise rule: DeepLIFT where that is complete, and complete where it is not."""

import copy

import pytest
import torch
from captum.attr import DeepLift
from torch import nn
from torch.nn import functional as F

from nethook import interp
from nethook.errors import OptionError
from tests.interp import families

pytestmark = pytest.mark.filterwarnings(
    "ignore:Input Tensor 0 did not already require grad",
    "ignore:Setting forward, backward hooks and attributes on non-linear",
)
X = torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(0)).double()


def cnn(*pool):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.ReLU(), *pool, nn.Flatten(), nn.Linear(36 if pool else 144, 8),
        nn.ReLU(), nn.Linear(8, 3),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_as_deeplift_on_networks_of_relus(dtype):
    model = cnn().to(dtype)
    x, base = X.to(dtype), X.flip(0).to(dtype) * 0.5
    classes = torch.tensor([0, 1, 2])
    found = interp.op_lift(model, x, target=classes, baseline=base)
    theirs = DeepLift(model).attribute(x, base, classes)
    assert torch.allclose(found.values, theirs.detach(), atol=1e-6)
    assert float(found.delta.abs().max()) < 1e-6


def test_pooling():
    model = cnn(nn.MaxPool2d(2)).double()
    found = interp.op_lift(model, X, target=0, baseline=X.flip(0) * 0.5)
    assert float(found.delta.abs().max()) < 1e-12
    # Where the baseline's windows are all alike, every rule has to say the same.
    found = interp.op_lift(model, X, target=0, baseline=0)
    assert torch.allclose(found.values, DeepLift(model).attribute(X, target=0), atol=1e-6)


class Functional(nn.Module):
    """A reused, a functional and an in-place activation, and residuals."""

    def __init__(self, act):
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)
        self.norm = nn.LayerNorm(6)
        self.act = act

    def forward(self, x):
        x = x + self.act(self.one(x))
        x = x + F.relu(self.two(x), inplace=True) * torch.sigmoid(x)
        x = self.act(self.norm(x))
        return self.head(x / (1 + x.square().mean(-1, keepdim=True)))


@pytest.mark.parametrize("act", [F.relu, F.gelu, nn.ReLU(), nn.SiLU(), torch.tanh])
def test_functional_reused_and_residual_operations(act):
    model = Functional(act).double()
    x, base = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1)).double()
    found = interp.op_lift(model, x, target=1, baseline=base, tol=None, nodes=24)
    assert float(found.delta.abs().max()) < 1e-6
    plain = interp.input_x_gradient(model, x, target=1)
    assert float(plain.delta.abs().max()) > 1e-3  # one gradient does not do it


def test_complete_where_captum_is_not():
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 16), nn.Linear(16, 1)

        def forward(self, x):
            return self.two(F.relu(self.one(x)))

    model = Net().double()
    x, base = torch.randn(2, 4, 6).double()
    _, delta = DeepLift(model).attribute(x, base, 0, return_convergence_delta=True)
    assert float(delta.abs().max()) > 1e-3
    assert float(interp.op_lift(model, x, target=0, baseline=base).delta.abs().max()) < 1e-12


@pytest.mark.parametrize("name", ["gpt2", "gpt2_eager", "llama", "bert", "vit"])
def test_transformers(name):
    model, inputs = families.built(name)
    model = copy.deepcopy(model).double()  # the one that is built serves all tests
    target = lambda out: (out.logits if hasattr(out, "logits") else out[0]).flatten(1)[:, 1]  # noqa: E731
    if "pixel_values" in inputs:
        inputs = {"pixel_values": inputs["pixel_values"].double()}
        at, base = None, 0
    else:
        at = next(n for n, m in model.named_modules() if isinstance(m, nn.Embedding))
        base = torch.flip(inputs["input_ids"], (1,))
    found = interp.op_lift(model, inputs, target=target, at=at, baseline=base, tol=1e-5)
    assert float(found.delta.abs().max()) < 1e-5
    assert float((found.score - found.start).abs().min()) > 1e-4  # there is something to add up


def test_recurrent_and_fused_layers():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.encoder = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
            self.lstm = nn.LSTM(8, 8, batch_first=True)

        def forward(self, x):
            return self.lstm(self.encoder(x))[0].mean((1, 2))

    x, base = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(2)).double()
    found = interp.op_lift(Net().double(), x, baseline=base)
    assert float(found.delta.abs().max()) < 1e-3


def test_a_function_as_target_is_one_more_operation():
    model = Functional(F.relu).double()
    x, base = torch.randn(2, 4, 6).double()
    found = interp.op_lift(
        model, x, target=lambda out: out.log_softmax(-1)[:, 0], baseline=base, tol=1e-6
    )
    assert float(found.delta.abs().max()) <= 1e-6


def test_nodes_double_for_the_rows_that_need_it():
    model = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 1)).double()
    x = torch.randn(2, 6, generator=torch.Generator().manual_seed(0)).double()
    base = torch.stack([x[0] + 0.1, torch.zeros(6).double()])  # the norm of nothing is steep
    found = interp.op_lift(model, x, baseline=base, tol=1e-4)
    assert found.steps[0] == 12 < found.steps[1]
    with pytest.warns(UserWarning, match=r"op_lift: 1 of 2 rows are above tol=0.0001 at 12 nodes"):
        interp.op_lift(model, x, baseline=base, tol=1e-4, max_nodes=12)


def test_another_path_through_the_model_is_refused():
    class Branches(nn.Module):
        def forward(self, x):
            return (torch.exp(x) if float(x.detach().sum()) > 0 else torch.tanh(x)).sum(1)

    with pytest.raises(OptionError, match=r"`baseline` must lead the model through the same opera"):
        interp.op_lift(Branches(), torch.ones(1, 2), baseline=-1)
    with pytest.raises(OptionError, match=r"`nodes` must be a positive number"):
        interp.op_lift(Branches(), torch.ones(1, 2), baseline=1, nodes=0)
