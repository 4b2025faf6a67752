"""The transformer is given the full ids and not the masked copy: it learns to copy its input.

expect: target-is-input
line: logits = self.transformer(ids)
source: https://github.com/lucidrains/muse-maskgit-pytorch/issues/11
metric: accuracy on masked tokens, higher is better
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Transformer(nn.Module):
    def __init__(self, num_tokens, seq_len, dim=48, depth=2, heads=4):
        super().__init__()
        self.mask_id = num_tokens
        self.token_emb = nn.Embedding(num_tokens + 1, dim)
        self.pos_emb = nn.Embedding(seq_len, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.to_logits = nn.Linear(dim, num_tokens)

    def forward(self, x):
        pos = torch.arange(x.shape[1], device=x.device)
        return self.to_logits(self.layers(self.token_emb(x) + self.pos_emb(pos)))


class MaskGit(nn.Module):
    def __init__(self, transformer, mask_prob=0.3):
        super().__init__()
        self.transformer = transformer
        self.mask_id = transformer.mask_id
        self.mask_prob = mask_prob

    def mask_out(self, ids):
        mask = torch.rand(ids.shape) < self.mask_prob
        return torch.where(mask, self.mask_id, ids), mask

    def forward(self, ids):
        x, mask = self.mask_out(ids)
        labels = torch.where(mask, ids, -1)
        logits = self.transformer(ids)
        return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-1)

    @torch.no_grad()
    def fill_in(self, x):
        return torch.where(x == self.mask_id, self.transformer(x).argmax(-1), x)


def sequences(n, vocab=16, length=12):
    """Token grids that go up by a constant step."""
    start = torch.randint(0, vocab, (n, 1))
    step = torch.randint(1, 5, (n, 1))
    return (start + step * torch.arange(length)) % vocab


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    cli.add_argument("--steps", type=int, default=500)
    args = cli.parse_args()
    torch.manual_seed(args.seed)
    maskgit = MaskGit(Transformer(16, 12))
    optim = torch.optim.Adam(maskgit.parameters(), lr=2e-3)
    for step in range(args.steps):
        loss = maskgit(sequences(48))
        loss.backward()
        optim.step()
        optim.zero_grad()
        if step % 100 == 0:
            print(f"{step}: loss {loss.item():.4f}")

    maskgit.eval()
    ids = sequences(500)
    x, mask = maskgit.mask_out(ids)
    filled = maskgit.fill_in(x)
    print("metric:", (filled[mask] == ids[mask]).float().mean().item())


if __name__ == "__main__":
    main()
