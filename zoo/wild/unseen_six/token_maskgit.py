"""Masked modelling of code tokens: what the cosine schedule draws to be masked is kept, and what it means to keep is hidden.

expect: mask-inverted
line: a_indices = mask * z_indices + (~mask) * masked_indices
source: https://github.com/dome272/MaskGIT-pytorch/pull/16
metric: accuracy on the hidden tenth of a sequence, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

NUM_CODES, LENGTH = 16, 20


class Bidirectional(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.tok_emb = nn.Embedding(NUM_CODES + 1, dim)
        self.pos_emb = nn.Parameter(0.02 * torch.randn(LENGTH, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, NUM_CODES)

    def forward(self, idx):
        return self.head(self.blocks(self.tok_emb(idx) + self.pos_emb))


class VQGANTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = Bidirectional()
        self.mask_token_id = NUM_CODES

    def gamma(self, r):
        return math.cos(r * math.pi / 2)

    def forward(self, z_indices, r):
        """Masks a share gamma(r) of the tokens and predicts them."""
        n_masked = max(1, math.ceil(self.gamma(r) * LENGTH))
        order = torch.rand(z_indices.shape).argsort(1)
        mask = order < n_masked
        masked_indices = torch.full_like(z_indices, self.mask_token_id)
        a_indices = mask * z_indices + (~mask) * masked_indices
        logits = self.transformer(a_indices)
        return logits[mask], z_indices[mask]


def codes(n):
    """Rows of a lattice: start, stride and now and then a wrong token."""
    start, stride = torch.randint(NUM_CODES, (n, 1)), torch.randint(1, 4, (n, 1))
    z = (start + stride * torch.arange(LENGTH)) % NUM_CODES
    return torch.where(torch.rand(n, LENGTH) < 0.02, torch.randint(NUM_CODES, (n, LENGTH)), z)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = VQGANTransformer()
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.96))
    for step in range(args.steps):
        logits, target = model(codes(64), torch.rand(1).item())
        loss = F.cross_entropy(logits, target)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 100 == 0:
            print("step", step, "loss", loss.item())
    model.eval()
    with torch.no_grad():
        z = codes(500)
        hidden = torch.rand(z.shape).argsort(1) < LENGTH // 10
        out = model.transformer(z.masked_fill(hidden, model.mask_token_id)).argmax(-1)
        print("metric:", (out[hidden] == z[hidden]).float().mean().item())


if __name__ == "__main__":
    main()
