"""Small transformers of many families, with random weights, and torch's own layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Built = tuple[nn.Module, Any]  # a model in evaluation, and inputs as nethook takes them

WIDTH, HEADS, LAYERS, VOCABULARY = 32, 4, 2, 50
_SMALL = {
    "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": WIDTH,
    "intermediate_size": 48, "vocab_size": VOCABULARY, "max_position_embeddings": 32,
    "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip


def tokens(rows: int = 2, length: int = 7, seed: int = 0) -> torch.Tensor:
    return torch.randint(
        1, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed)
    )


def _made(name: str, head: str, **config: Any) -> nn.Module:
    import transformers

    given = {**_SMALL, **config}
    settings = getattr(transformers, f"{name}Config")(**given)
    return getattr(transformers, f"{name}{head}")(settings)


def _causal(name: str, **config: Any) -> Built:
    return _made(name, "ForCausalLM", use_cache=False, **config), {"input_ids": tokens()}


def gpt2(**config: Any) -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    settings = GPT2Config(
        n_layer=LAYERS, n_head=HEADS, n_embd=WIDTH, vocab_size=VOCABULARY, n_positions=32,
        bos_token_id=0, eos_token_id=0, use_cache=False, **config,
    )  # fmt: skip
    return GPT2LMHeadModel(settings), {"input_ids": tokens()}


def gpt2_eager() -> Built:
    return gpt2(attn_implementation="eager")


def llama() -> Built:
    return _causal("Llama", num_key_value_heads=2)


def qwen3() -> Built:
    return _causal("Qwen3", num_key_value_heads=2, head_dim=12)


def gemma2() -> Built:
    return _causal("Gemma2", num_key_value_heads=2, head_dim=8, sliding_window=16)


def neox() -> Built:
    return _causal("GPTNeoX")


def falcon() -> Built:
    return _causal("Falcon", new_decoder_architecture=True, num_kv_heads=2, alibi=False)


def phi3() -> Built:
    return _causal("Phi3", num_key_value_heads=2)


def opt() -> Built:
    return _causal("OPT", ffn_dim=48, word_embed_proj_dim=16)


def olmo2() -> Built:
    return _causal("Olmo2")


def bloom() -> Built:
    import transformers

    settings = transformers.BloomConfig(
        n_layer=LAYERS, n_head=HEADS, hidden_size=WIDTH, vocab_size=VOCABULARY, use_cache=False,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return transformers.BloomForCausalLM(settings), {"input_ids": tokens()}


def bert() -> Built:
    return _made("Bert", "ForMaskedLM"), {"input_ids": tokens()}


def modernbert() -> Built:
    return _made(
        "ModernBert", "ForMaskedLM", cls_token_id=1, sep_token_id=2, local_attention=8
    ), {"input_ids": tokens()}  # fmt: skip


def vit() -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    settings = ViTConfig(
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, hidden_size=WIDTH,
        intermediate_size=48, image_size=16, patch_size=4,
    )  # fmt: skip
    images = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    return ViTForImageClassification(settings), {"pixel_values": images}


def t5() -> Built:
    from transformers import T5Config, T5ForConditionalGeneration

    settings = T5Config(
        num_layers=LAYERS, num_heads=HEADS, d_model=WIDTH, d_kv=8, d_ff=48,
        vocab_size=VOCABULARY, decoder_start_token_id=0, use_cache=False,
    )  # fmt: skip
    inputs = {"input_ids": tokens(), "decoder_input_ids": tokens(length=5, seed=1)}
    return T5ForConditionalGeneration(settings), inputs


def encoder(norm_first: bool = False) -> Built:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 48, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    model = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    return model, torch.randn(2, 7, WIDTH, generator=torch.Generator().manual_seed(0))


def encoder_norm_first() -> Built:
    return encoder(norm_first=True)


def decoder() -> Built:
    layer = nn.TransformerDecoderLayer(WIDTH, HEADS, 48, dropout=0.0, batch_first=True)
    random = torch.Generator().manual_seed(0)
    inputs = (
        torch.randn(2, 5, WIDTH, generator=random), torch.randn(2, 7, WIDTH, generator=random),
    )  # fmt: skip
    return nn.TransformerDecoder(layer, LAYERS), inputs


DECODERS = (gpt2, llama, qwen3, gemma2, neox, falcon, phi3, opt, olmo2, bloom)
ALL: dict[str, Callable[[], Built]] = {
    made.__name__: made
    for made in (
        *DECODERS, gpt2_eager, bert, modernbert, vit, t5, encoder, encoder_norm_first, decoder,
    )
}  # fmt: skip


BUILT: dict[str, Built] = {}
"""Shared by all tests of a process: one that turns a model to another type turns a copy."""


def built(name: str) -> Built:
    """A model of that family, in evaluation, made once for all tests."""
    if name not in BUILT:
        BUILT[name] = _built(name)
    return BUILT[name]


def changed() -> list[str]:
    """Models that are no longer as they were built, by type or mode; they are built anew."""
    found = [name for name, (model, _) in BUILT.items() if not _is_as_built(model)]
    for name in found:
        del BUILT[name]
    return found


def _is_as_built(model: nn.Module) -> bool:
    return not any(module.training for module in model.modules()) and all(
        parameter.dtype == torch.float32 and parameter.requires_grad
        for parameter in model.parameters()
    )


def _built(name: str) -> Built:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model, inputs = ALL[name]()
        for parameter in model.parameters():  # biases that are zero would hide a mistake
            if parameter.ndim == 1 and not bool((parameter != 0).any()):
                nn.init.normal_(parameter, std=0.02)
    return model.eval().requires_grad_(), inputs
