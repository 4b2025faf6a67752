"""Attention: modules that are never called, and a fused path that looks at hooks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]

NESTED = Quiet(
    UserWarning,
    "The PyTorch API of nested tensors is in prototype stage",
    "torch builds nested tensors by itself inside the fused path",
)
HOOKS_CHANGE_IT = "forward hooks on a layer switch the fused path off"


class SelfAttention(nn.Module):
    def __init__(self, *, weights: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.1)
        self._weights = weights

    def forward(self, x: Tensor) -> object:
        return self.attention(x, x, x, need_weights=self._weights)


class Written(nn.Module):
    """Attention written out, as it is done where one wants to see its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.softmax = nn.Softmax(-1)
        self.out = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)  # (B, T, 8) each
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        return self.out(self.softmax(q @ k.mT * 8**-0.5 + mask) @ v)


class Fused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _encoder(*, nested: bool = True) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)


def _sequence(model: nn.Module, given: Given) -> object:
    return model(given.floats(3, 4, 8))


def _padded(model: nn.Module, given: Given) -> object:
    lengths = torch.tensor([4, 2, 3])
    mask = torch.arange(4)[None] >= lengths[:, None]
    return model(given.floats(3, 4, 8), src_key_padding_mask=mask)


@torch.no_grad()
def _without_gradient(model: nn.Module, given: Given) -> object:
    return _sequence(model, given)


@torch.no_grad()
def _padded_without_gradient(model: nn.Module, given: Given) -> object:
    return _padded(model, given)


@torch.inference_mode()
def _padded_inference(model: nn.Module, given: Given) -> object:
    return _padded(model, given)


class Surrounded(nn.Module):
    """The fused encoder between layers that can be hooked without harm."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Linear(8, 8)
        self.encoder = _encoder()
        self.after = nn.Linear(8, 2)

    def forward(self, x: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        return self.after(self.encoder(self.before(x), src_key_padding_mask=src_key_padding_mask))


EXHIBITS = (
    Exhibit(
        "attention_weights",
        "MultiheadAttention uses the weight of `out_proj` but never calls it.",
        lambda: SelfAttention(weights=True),
        _sequence,
    ),
    Exhibit(
        "attention_no_weights",
        "The same, with None as second output.",
        lambda: SelfAttention(weights=False),
        _sequence,
    ),
    Exhibit(
        "attention_eval_fast",
        "MultiheadAttention has a fused path of its own, in eval mode without gradient.",
        lambda: SelfAttention(weights=False),
        _without_gradient,
        differentiable=False,
        train=False,
    ),
    Exhibit(
        "attention_written_out",
        "Softmax as a module between views of one projection.",
        Written,
        _sequence,
    ),
    Exhibit(
        "attention_sdpa",
        "Permuted views of one projection go into a fused function.",
        Fused,
        _sequence,
    ),
    Exhibit("encoder_training", "TransformerEncoder in training, with dropout.", _encoder, _padded),
    Exhibit(
        "encoder_eval_with_gradient",
        "TransformerEncoder in eval mode but with gradient: no fused path.",
        _encoder,
        _padded,
        train=False,
    ),
    Exhibit(
        "encoder_fast_path",
        "In eval mode without gradient each layer is one fused call, unless a hook is on it or "
        "inside of it.",
        _encoder,
        _without_gradient,
        differentiable=False,
        train=False,
        no_oracle=HOOKS_CHANGE_IT,
    ),
    Exhibit(
        "encoder_fast_path_masked",
        "With a padding mask the fused call gives other last bits than the layers one by one.",
        lambda: _encoder(nested=False),
        _padded_without_gradient,
        differentiable=False,
        train=False,
        no_oracle=HOOKS_CHANGE_IT,
    ),
    Exhibit(
        "encoder_fast_path_padded",
        "With padding cut off, the layers of the fused path pass nested tensors on.",
        _encoder,
        _padded_without_gradient,
        differentiable=False,
        train=False,
        quiet=[NESTED],
        no_oracle=HOOKS_CHANGE_IT,
    ),
    Exhibit(
        "encoder_fast_path_inference",
        "The same in inference mode, inside a larger model.",
        Surrounded,
        _padded_inference,
        differentiable=False,
        train=False,
        quiet=[NESTED],
        no_oracle=HOOKS_CHANGE_IT,
    ),
    Exhibit(
        "transformer_norm_first",
        "Norm-first layers write residual sums; encoder and decoder together.",
        lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True, norm_first=True),
        lambda model, given: model(given.floats(2, 4, 8), given.floats(2, 3, 8)),
        quiet=[
            Quiet(
                UserWarning,
                "enable_nested_tensor is True, but self.use_nested_tensor is False",
                "nn.Transformer has no way to switch it off",
            )
        ],
    ),
)
