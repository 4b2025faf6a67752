"""Networks that the tests of this room share."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


def mlp(
    depth: int, activation: type[nn.Module], width: int = 64, outputs: int = 10
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), activation()]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


class Functional(nn.Module):
    """No module but the layers: activations and sums are functions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.third, self.fourth = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.second(F.leaky_relu(self.first(x), 0.2))
        h = self.third(x)
        return x + self.fourth(h * torch.sigmoid(h))


class Block(nn.Module):
    """Two convolutions, and what came in added."""

    def __init__(self, channels: int, norm: bool) -> None:
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1, bias=not norm)
        self.b = nn.Conv2d(channels, channels, 3, padding=1, bias=not norm)
        self.norm_a = nn.BatchNorm2d(channels) if norm else nn.Identity()
        self.norm_b = nn.BatchNorm2d(channels) if norm else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.norm_b(self.b(F.relu(self.norm_a(self.a(x))))))


class ResNet(nn.Module):
    """Blocks at two widths, with a projection between them."""

    def __init__(self, blocks: int, norm: bool) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.low = nn.Sequential(*[Block(8, norm) for _ in range(blocks)])
        self.down = nn.Conv2d(8, 16, 1, stride=2)
        self.high = nn.Sequential(*[Block(16, norm) for _ in range(blocks)])
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.low(F.relu(self.stem(x)))
        return self.head(self.high(self.down(x)).mean((2, 3)))


class Reader(nn.Module):
    """Embedding, LSTM, head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, 2, batch_first=True)
        self.head = nn.Linear(32, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embedding(tokens))[0][:, -1])


def transformer(layers: int = 3, *, norm_first: bool = True) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        32, 4, 64, batch_first=True, norm_first=norm_first, activation="gelu"
    )
    return nn.TransformerEncoder(layer, layers, nn.LayerNorm(32), enable_nested_tensor=False)


def gpt2(layers: int = 2) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=32, n_layer=layers, n_head=4, vocab_size=20, n_positions=16,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def llama(layers: int = 2) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=32, num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=20, intermediate_size=64, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def vit(layers: int = 2) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=64,
        image_size=8, patch_size=4,
    )  # fmt: skip
    return ViTForImageClassification(config)


def rms(value: torch.Tensor) -> float:
    return float(value.detach().double().square().mean().sqrt())
