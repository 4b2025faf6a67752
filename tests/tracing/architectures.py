"""Small models of well-known kinds, with random weights: what a site map has to be right on."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

Built = tuple[nn.Module, Any]  # a model in evaluation, and inputs as nethook takes them


def tokens(*shape: int, high: int = 40) -> torch.Tensor:
    return torch.randint(1, high, shape, generator=torch.Generator().manual_seed(0))


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def gpt2(attention: str = "sdpa") -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=2, n_head=4, n_embd=32, vocab_size=50, n_positions=32, bos_token_id=0,
        eos_token_id=0, attn_implementation=attention,
    )  # fmt: skip
    return GPT2LMHeadModel(config), {"input_ids": tokens(2, 8)}


def llama(attention: str = "sdpa") -> Built:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=32,
        intermediate_size=48, vocab_size=50, max_position_embeddings=32,
        attn_implementation=attention,
    )  # fmt: skip
    return LlamaForCausalLM(config), {"input_ids": tokens(2, 8)}


def t5(attention: str = "eager") -> Built:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        num_layers=2, num_heads=4, d_model=32, d_kv=8, d_ff=48, vocab_size=50,
        decoder_start_token_id=0, attn_implementation=attention,
    )  # fmt: skip
    inputs = {"input_ids": tokens(2, 8), "decoder_input_ids": tokens(2, 5)}
    return T5ForConditionalGeneration(config), inputs


def vit(attention: str = "sdpa") -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=48,
        image_size=16, patch_size=4, attn_implementation=attention,
    )  # fmt: skip
    return ViTForImageClassification(config), {"pixel_values": numbers(2, 3, 16, 16)}


def resnet() -> Built:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type="basic")
    return ResNetForImageClassification(config), {"pixel_values": numbers(2, 3, 32, 32)}


def convnext() -> Built:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 2], num_stages=2)
    return ConvNextForImageClassification(config), {"pixel_values": numbers(2, 3, 32, 32)}


def unet() -> Built:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        from monai.networks.nets import UNet
    model = UNet(
        spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2),
        num_res_units=1,
    )  # fmt: skip
    return model, numbers(2, 1, 16, 16)


def transformer() -> Built:
    model = nn.Transformer(
        d_model=16, nhead=2, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=24,
        batch_first=True,
    )  # fmt: skip
    return model, (numbers(2, 6, 16), numbers(2, 4, 16))


def lstm() -> Built:
    return nn.LSTM(6, 8, num_layers=2, bidirectional=True), numbers(5, 2, 6)


ALL: dict[str, Callable[[], Built]] = {
    made.__name__: made
    for made in (gpt2, llama, t5, vit, resnet, convnext, unet, transformer, lstm)
}
every_architecture = pytest.mark.parametrize("name", ALL)


@functools.cache
def built(name: str) -> Built:
    """A model of that name, in evaluation, made once for all tests."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model, inputs = ALL[name]()
    return model.eval(), inputs
