"""“Push the model towards these words.” A direction is found, added while it writes, and measured.

A GPT-2 with random weights; tokens of one half of the vocabulary get a planted direction.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import nethook
from nethook import interp

torch.manual_seed(0)
config = GPT2Config(
    n_layer=2, n_head=2, n_embd=32, vocab_size=40, n_positions=32, bos_token_id=0, eos_token_id=0
)
model: Any = GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]
model.eval()
model.generation_config.eos_token_id = None  # no word ends a text
planted = torch.randn(32)
planted /= planted.norm()
with torch.no_grad():
    model.transformer.wte.weight[20:] += planted  # the words of one kind have something in common

first, second = torch.randint(0, 20, (32, 6)), torch.randint(20, 40, (32, 6))
v = interp.direction(model, second, first, at="transformer.h.0", pool="mean")
cosine = v.vector @ planted.double()
print(f"found at {v.site}: AUC {v.auc:.2f}, cosine with what was planted {cosine:.2f}")


def of_second_kind(out: object) -> Tensor:
    """How much likelier a word of the second kind is next, in logits."""
    logits: Tensor = out.logits[:, -1]  # type: ignore[attr-defined]
    return logits[:, 20:].mean(-1) - logits[:, :20].mean(-1)


curve = v.effects(model, first, metric=of_second_kind, strengths=(-8, -4, 0, 4, 8))
print(curve)
figure = curve.figure()

prompt = first[:2]
mask = torch.ones_like(prompt)


def written(strength: float, *, cache: bool) -> Tensor:
    """The words that the model writes while it is steered."""
    with nethook.edit(model, outputs={v.site: v.steer(strength, phase="decode")}):
        ids: Tensor = model.generate(
            prompt, attention_mask=mask, max_new_tokens=8, do_sample=False, use_cache=cache,
            pad_token_id=0,
        )  # fmt: skip
    return ids[:, prompt.shape[1] :]


same = torch.equal(written(40.0, cache=True), written(40.0, cache=False))
print("with and without a cache the same words:", same)
share = [float((written(s, cache=True)[:, 1:] >= 20).double().mean()) for s in (-40.0, 40.0)]
print(f"words of the second kind: {share[0]:.0%} against the direction, {share[1]:.0%} along it")
