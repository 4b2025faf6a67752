"""The canaries of functions notice a wrong answer, and put back what they wrap."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils import clip_grad
from torch.utils import checkpoint

from nethook import torch_private
from nethook.hooks.canaries import functions
from nethook.hooks.canaries.report import works
from nethook.private_names import look_up
from tests.hooks.canaries.lies import check_noticed

pytestmark = pytest.mark.short
CLIP = "torch.nn.utils.clip_grad"


def identity(x: torch.Tensor, *_: object) -> torch.Tensor:
    return x


@pytest.mark.parametrize(
    ("attribute", "lie", "path"),
    [
        ("FakeTensor", int, "torch._subclasses.fake_tensor.FakeTensor"),
        (
            "mask_of_bias",
            lambda *_: torch.ones(2, 2, dtype=torch.bool),
            "torch.nn.attention.bias.CausalBias._materialize",
        ),
        ("ITERATOR_OF_LOADER", "_no_such_name", "torch.utils.data.DataLoader._iterator"),
        (
            "ddp_at_work",
            identity,
            "torch.nn.parallel.DistributedDataParallel._active_ddp_module",
        ),
    ],
)
def test_a_wrong_answer_is_noticed(
    attribute: str, lie: object, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_noticed(monkeypatch, functions, path, attribute, lie)


@pytest.mark.parametrize(
    ("path", "module", "caller"),
    [
        (f"{CLIP}.{torch_private.CLIP_NORM}", torch.nn.utils, "clip_grad_norm_"),
        (f"{CLIP}.{torch_private.CLIP_GROUPS}", torch.nn.utils, "clip_grad_value_"),
        (
            f"torch.utils.checkpoint.{torch_private.CHECKPOINT_GENERATOR}",
            checkpoint,
            "checkpoint",
        ),
        ("torch._C._nn.cross_entropy_loss", torch.nn.functional, "cross_entropy"),
    ],
)
def test_a_function_that_torch_no_longer_calls_is_noticed(
    path: str, module: object, caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = look_up(path)
    assert works(path)
    monkeypatch.setattr(module, caller, lambda *_, **__: None)
    assert not works(path)
    assert look_up(path) is before  # what a canary wraps, it puts back


def test_a_function_that_raises_is_put_back() -> None:
    path = f"{CLIP}.{torch_private.CLIP_NORM}"
    before = look_up(path)
    with pytest.raises(KeyError), functions._wrapped(path, []):
        assert look_up(path) is not before
        raise KeyError
    assert look_up(path) is before
    assert clip_grad is look_up(CLIP)
