"""A prefix language model: the question is read in both directions, the answer is written from left to right.

expect: nothing
style: attention mask with a bidirectional prefix, loss on the answer only (looks like a missing causal mask)
"""

import argparse

import torch
import torch.nn as nn
from torch.nn import functional as F

PREFIX, ANSWER, VOCAB = 8, 8, 16
TOTAL = PREFIX + 1 + ANSWER
SEP = 0


def prefix_mask():
    """True where attention is forbidden."""
    mask = torch.triu(torch.ones(TOTAL, TOTAL, dtype=torch.bool), 1)
    mask[: PREFIX + 1, : PREFIX + 1] = False
    return mask


class PrefixLM(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(TOTAL, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, VOCAB)
        self.register_buffer("mask", prefix_mask())

    def forward(self, ids):
        n = ids.shape[1]
        return self.head(self.blocks(self.tok(ids) + self.pos[:n], mask=self.mask[:n, :n]))


def examples(n):
    """The answer is the question in sorted order."""
    question = torch.randint(1, VOCAB, (n, PREFIX))
    answer = question.sort(1).values
    return torch.cat([question, torch.full((n, 1), SEP), answer], 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = PrefixLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    for step in range(args.steps):
        ids = examples(48)
        logits = model(ids[:, :-1])[:, PREFIX:]
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, PREFIX + 1 :].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    truth = examples(200)
    ids = truth[:, : PREFIX + 1]
    with torch.no_grad():
        for _ in range(ANSWER):
            ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], 1)
    print(f"metric: {(ids == truth)[:, PREFIX + 1:].float().mean().item():.4f}")


if __name__ == "__main__":
    main()
