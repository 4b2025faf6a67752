"""An energy-based model trained by contrastive divergence: samples come from gradients with respect to the input.

expect: nothing
metric: AUC of the energy for real points against uniform noise, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def langevin(energy, x, steps=15, size=0.1, noise=0.05):
    """Walks downhill from x; the weights must not move meanwhile."""
    for p in energy.parameters():
        p.requires_grad_(False)
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        (grad,) = torch.autograd.grad(energy(x).sum(), x)
        x = (x - size * grad.clamp(-1, 1) + noise * torch.randn_like(x)).clamp(-3, 3).detach().requires_grad_(True)
    for p in energy.parameters():
        p.requires_grad_(True)
    return x.detach()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    data, _ = make_moons(2000, noise=0.05, random_state=seed)
    data = torch.tensor((data - data.mean(0)) / data.std(0), dtype=torch.float32)
    energy = Energy()
    optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3, betas=(0.0, 0.999))
    buffer = 6 * torch.rand(1000, 2) - 3
    for it in range(350):
        real = data[torch.randint(0, 1500, (100,))]
        rows = torch.randint(0, 1000, (100,))
        start = buffer[rows]
        start[:10] = 6 * torch.rand(10, 2) - 3
        fake = langevin(energy, start)
        buffer[rows] = fake
        e_real, e_fake = energy(real), energy(fake)
        loss = (e_real - e_fake).mean() + 0.1 * (e_real.pow(2) + e_fake.pow(2)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 50 == 0:
            print(f"it {it} loss {loss.item():.4f} gap {(e_fake - e_real).mean().item():.3f}")
    with torch.no_grad():
        scores = torch.cat([-energy(data[1500:]), -energy(6 * torch.rand(500, 2) - 3)])
    print("metric:", roc_auc_score([1] * 500 + [0] * 500, scores.numpy()))
