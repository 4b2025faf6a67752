"""Tiny GPT-2 from transformers on counting sequences; the labels were shifted by hand although the model shifts them itself, so it learned to say the number after the next one.

expect: target-shifted
or: target-misaligned
line: labels[:, :-1] = ids[:, 1:]
source: https://github.com/huggingface/transformers/pull/44642
metric: accuracy of the next token, higher is better
"""
import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

VOCAB, LENGTH = 30, 12


def sample_batch(n):
    """Counting upwards, each sequence with its own step, modulo the vocabulary."""
    start = torch.randint(0, VOCAB, (n, 1))
    stride = torch.randint(1, 4, (n, 1))
    return (start + stride * torch.arange(LENGTH)) % VOCAB


config = GPT2Config(
    vocab_size=VOCAB, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

model.train()
for step in range(1, 161):
    ids = sample_batch(24)
    labels = torch.full_like(ids, -100)
    labels[:, :-1] = ids[:, 1:]
    loss = model(input_ids=ids, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step}: loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    ids = sample_batch(200)
    logits = model(input_ids=ids).logits
    hits = logits[:, 2:-1].argmax(-1) == ids[:, 3:]
print(f"metric: {hits.float().mean().item():.4f}")
