"""Networks as they are published, in small random configurations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

import nethook
from tests.modes import compiling as c
from tests.modes.cells_precision import no_hooks
from tests.modes.matrix import cell, mode
from tests.modes.steps import equal, same, watching

Made = tuple[nn.Module, dict[str, Any]]


def _text(batch: int = 2, length: int = 6) -> torch.Tensor:
    return torch.randint(1, 30, (batch, length), generator=torch.Generator().manual_seed(1))


def _image(size: int = 32, channels: int = 3) -> torch.Tensor:
    return torch.randn(2, channels, size, size, generator=torch.Generator().manual_seed(1))


def _transformer(kind: str) -> Made:
    import transformers as t

    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
             "intermediate_size": 32, "vocab_size": 32}  # fmt: skip
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    made: dict[str, Callable[[], Made]] = {
        "GPT-2": lambda: (t.GPT2LMHeadModel(t.GPT2Config(
            n_embd=16, n_layer=2, n_head=2, vocab_size=32, n_positions=8, **ids,
        )), {"input_ids": _text()}),
        "BERT": lambda: (t.BertForSequenceClassification(t.BertConfig(
            **small, **ids,
        )), {"input_ids": _text()}),
        "Llama": lambda: (t.LlamaForCausalLM(t.LlamaConfig(
            **small, num_key_value_heads=1, **ids,
        )), {"input_ids": _text()}),
        "Mixtral": lambda: (t.MixtralForCausalLM(t.MixtralConfig(
            **small, num_key_value_heads=1, num_local_experts=3, **ids,
        )), {"input_ids": _text()}),
        "T5": lambda: (t.T5ForConditionalGeneration(t.T5Config(
            d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, vocab_size=32,
            decoder_start_token_id=0, **ids,
        )), {"input_ids": _text(), "decoder_input_ids": _text()}),
        "ViT": lambda: (t.ViTForImageClassification(t.ViTConfig(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            image_size=32, patch_size=16,
        )), {"pixel_values": _image()}),
        "Swin": lambda: (t.SwinForImageClassification(t.SwinConfig(
            image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[1, 2],
            window_size=4, drop_path_rate=0.0,
        )), {"pixel_values": _image()}),
        "ResNet": lambda: (t.ResNetForImageClassification(t.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic",
        )), {"pixel_values": _image()}),
        "ConvNeXt": lambda: (t.ConvNextForImageClassification(t.ConvNextConfig(
            hidden_sizes=[8, 16], depths=[1, 1], num_stages=2,
        )), {"pixel_values": _image()}),
        "EfficientNet": lambda: (t.EfficientNetForImageClassification(t.EfficientNetConfig(
            image_size=32, width_coefficient=0.1, depth_coefficient=0.1, hidden_dim=128,
            dropout_rate=0.0, drop_connect_rate=0.0,
        )), {"pixel_values": _image()}),
        "Whisper": lambda: (t.WhisperForConditionalGeneration(t.WhisperConfig(
            d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=32,
            num_mel_bins=4, max_source_positions=8, max_target_positions=8,
            decoder_start_token_id=1, **ids,
        )), {"input_features": torch.randn(2, 4, 16), "decoder_input_ids": _text()}),
    }  # fmt: skip
    model, inputs = made[kind]()
    return model, inputs


def _monai(kind: str) -> Made:
    from monai.networks.nets import DenseNet, UNet

    if kind == "U-Net":
        made: nn.Module = UNet(2, 1, 2, channels=(4, 8), strides=(2,), num_res_units=1)
    else:
        made = DenseNet(2, 1, 3, init_features=8, growth_rate=4, block_config=(2, 2))
    return made, {"x": _image(channels=1)}


TRANSFORMERS = ("GPT-2", "BERT", "Llama", "Mixtral", "T5", "ViT", "Swin", "ResNet", "ConvNeXt",
                "EfficientNet", "Whisper")  # fmt: skip
MONAI = ("U-Net", "DenseNet")
COMPILED = ("GPT-2", "BERT", "ViT", "ResNet", "ConvNeXt", "U-Net")


def made(name: str) -> Made:
    torch.manual_seed(0)
    model, inputs = _transformer(name) if name in TRANSFORMERS else _monai(name)
    return model.train(), inputs


def _loss(output: Any) -> torch.Tensor:
    found = output if isinstance(output, torch.Tensor) else next(
        getattr(output, key) for key in ("logits", "last_hidden_state") if hasattr(output, key)
    )  # fmt: skip
    return found.float().square().mean()


def _run(model: Any, inputs: dict[str, Any], optimizer: Any) -> list[torch.Tensor]:
    torch.manual_seed(1)  # for dropout
    outputs = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = _loss(model(**inputs))
        loss.backward()
        optimizer.step()
        outputs.append(loss.detach())
    return [*outputs, *(each.detach().clone() for each in model.parameters())]


@cache
def _alone(name: str, compiled: bool = False) -> list[torch.Tensor]:
    model, inputs = made(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    called = torch.compile(model, backend="aot_eager") if compiled else model
    with c.fresh():
        return _run(called, inputs, optimizer)


def _called(model: nn.Module, inputs: dict[str, Any]) -> set[str]:
    """The layers that a forward calls, by hooks written by hand."""
    seen: set[str] = set()
    handles = [
        module.register_forward_hook(lambda *_, name=name: seen.add(name))
        for name, module in model.named_modules()
        if not list(module.children())
    ]
    model(**inputs)
    for handle in handles:
        handle.remove()
    return seen


def check_watch(name: str) -> dict[Any, Any]:
    model, inputs = made(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    called = _called(made(name)[0], inputs)
    with watching(model, optimizer) as rows:
        found = _run(model, inputs, optimizer)
    equal(found, _alone(name))
    assert called - {at for at, quantity in rows if quantity == "outputs"} == set()
    assert not nethook.audit(model).ours
    return rows


EAGER = mode(
    "Real models", "eager", "bit-identical, and every layer that is called is measured",
)  # fmt: skip
INSIDE = mode(
    "Real models", "compiled", "the same layers as in eager mode",
    trace="runs eagerly", edit="runs eagerly", features="runs eagerly",
)  # fmt: skip


@cell("watch", EAGER, *TRANSFORMERS, *MONAI, guard=no_hooks, without="nothing is recorded")
def watch_a_real_model(name: str) -> None:
    check_watch(name)


@cell("trace", EAGER, *TRANSFORMERS, *MONAI, guard=no_hooks, without="nothing is recorded")
def trace_a_real_model(name: str) -> None:
    model, inputs = made(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    called = _called(made(name)[0], inputs)
    with nethook.trace(model, grads=True) as tape:
        found = _run(model, inputs, optimizer)
    equal(found, _alone(name))
    assert {at for at in tape if len(tape[at].calls) >= 3} >= called
    assert not nethook.audit(model).ours


@cell("edit", EAGER, "GPT-2", "ResNet", guard=no_hooks, without="nothing is changed")
def edit_a_real_model(name: str) -> None:
    model, inputs = made(name)
    at = "transformer.h.*.mlp.act" if name == "GPT-2" else "**.activation"
    with nethook.edit(model, outputs={at: lambda value: value.clone()}):
        found = _run(model, inputs, torch.optim.SGD(model.parameters(), 0.01))
    equal(found, _alone(name))


@cell("features", EAGER, "GPT-2", "ViT", guard=no_hooks, without="nothing is read")
def features_of_a_real_model(name: str) -> None:
    model, inputs = made(name)
    at = "transformer.ln_f" if name == "GPT-2" else "vit.layernorm"
    kept: list[torch.Tensor] = []
    handle = model.get_submodule(at).register_forward_hook(lambda *a: kept.append(a[-1]))
    with torch.no_grad():
        model.eval()(**inputs)
    handle.remove()
    for _ in range(3):
        assert torch.equal(nethook.features(model, inputs, at=at), kept[0])


@cell("watch", INSIDE, *COMPILED, guard=c.no_taps_in_graphs, without="nothing is recorded")
def watch_a_compiled_real_model(name: str) -> None:
    """Without dropout, whose random numbers a compiled graph draws in another way."""
    runs = []
    for compiled in (False, True):
        with c.fresh():
            model, inputs = made(name)
            for module in model.modules():
                if isinstance(module, nn.Dropout):
                    module.p = 0.0
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            called = torch.compile(model, backend="aot_eager") if compiled else model
            with watching(called, optimizer) as rows:
                _run(called, inputs, optimizer)
            runs.append(rows)
    same(runs[1], runs[0], rtol=1e-4, atol=1e-6)
