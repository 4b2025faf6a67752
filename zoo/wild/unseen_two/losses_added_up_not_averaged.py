"""Sixteen micro-batches make a step of a sparse autoencoder; each loss is a mean, and none is divided by sixteen.

expect: unscaled-accumulation
or: learning-rate-too-high, diverged
line: loss.backward()
source: https://github.com/ApolloResearch/e2e_sae/pull/70
metric: share of the variance that is not explained on test activations, lower is better
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--lr", type=float, default=1.2)
parser.add_argument("--n_steps", type=int, default=200)
parser.add_argument("--gradient_accumulation_steps", type=int, default=16)
parser.add_argument("--sparsity_coeff", type=float, default=0.002)
config = parser.parse_args()
torch.manual_seed(config.seed)

D_MODEL, N_FEATURES = 24, 40
directions = nn.functional.normalize(torch.randn(N_FEATURES, D_MODEL), dim=1)


def activations(n):
    """Each activation is a sum of a few directions."""
    strength = torch.rand(n, N_FEATURES) * (torch.rand(n, N_FEATURES) < 0.08)
    return 3 * strength @ directions + 0.05 * torch.randn(n, D_MODEL)


class SAE(nn.Module):
    def __init__(self, n_dict=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(D_MODEL, n_dict), nn.ReLU())
        self.decoder = nn.Linear(n_dict, D_MODEL, bias=True)

    def forward(self, x):
        c = self.encoder(x)
        return self.decoder(c), c


sae = SAE()
optimizer = torch.optim.SGD(sae.parameters(), lr=config.lr)
optimizer.zero_grad()
total = config.n_steps * config.gradient_accumulation_steps
for step in range(1, total + 1):
    x = activations(8)
    x_hat, c = sae(x)
    recon = (x_hat - x).pow(2).mean()
    loss = recon + config.sparsity_coeff * c.abs().mean(0).sum()
    loss.backward()
    if step % config.gradient_accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
    if step % 320 == 0:
        print(f"step {step} loss {loss.item():.5f} l0 {(c > 0).float().sum(1).mean().item():.1f}")

with torch.no_grad():
    x = activations(2000)
    unexplained = (sae(x)[0] - x).pow(2).sum() / (x - x.mean(0)).pow(2).sum()
print("metric:", min(1e6, unexplained.nan_to_num(1e6).item()))
