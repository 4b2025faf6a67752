"""Features with a planted direction, and a small GPT-2 that has one in its embeddings."""

import functools

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SITE = "transformer.h.0"


def gaussian(rows=2000, width=12, gap=3.0, seed=0):
    """Two classes of Gaussian features whose means differ along a direction, which is returned."""
    random = torch.Generator().manual_seed(seed)
    unit = torch.randn(width, generator=random, dtype=torch.double)
    unit /= unit.norm()
    labels = torch.randint(0, 2, (rows,), generator=random)
    noise = torch.randn(rows, width, generator=random, dtype=torch.double)
    return noise + gap * (labels - 0.5)[:, None] * unit, labels, unit


@functools.cache
def gpt2():
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        config = GPT2Config(
            n_layer=2, n_head=2, n_embd=16, vocab_size=32, n_positions=32, bos_token_id=0,
            eos_token_id=0, pad_token_id=0,
        )  # fmt: skip
        return GPT2LMHeadModel(config).double().eval()
