"""Domain-adversarial training: a reversed gradient works against the domain classifier, whose loss rises on purpose.

expect: nothing
metric: accuracy on the target domain, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class ReverseLayerF(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        self.class_classifier = nn.Linear(24, 3)
        self.domain_classifier = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, x, alpha):
        h = self.feature(x)
        return self.class_classifier(h), self.domain_classifier(ReverseLayerF.apply(h, alpha))


def draw(n, domain, rng, world):
    """Ten features say the class; two say where the sample was taken, and agree with the class at home only."""
    label = rng.integers(0, 3, n)
    signal = world[label] + rng.normal(0, 1.0, (n, 10))
    place = rng.normal(2.0 if domain else -2.0, 0.7, (n, 2))
    return torch.tensor(np.hstack([signal, place]), dtype=torch.float32), torch.tensor(label)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    world = rng.normal(0, 1.2, (3, 10))
    net = DANN()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    n_steps = 500
    for i in range(n_steps):
        p = i / n_steps
        alpha = 0.5 * (2.0 / (1.0 + np.exp(-10 * p)) - 1)
        s_img, s_label = draw(32, 0, rng, world)
        t_img, _ = draw(32, 1, rng, world)
        class_out, s_domain = net(s_img, alpha)
        _, t_domain = net(t_img, alpha)
        err_label = F.cross_entropy(class_out, s_label)
        err_domain = F.cross_entropy(s_domain, torch.zeros(32, dtype=torch.long)) + F.cross_entropy(t_domain, torch.ones(32, dtype=torch.long))
        err = err_label + err_domain
        net.zero_grad()
        err.backward()
        optimizer.step()
        if i % 50 == 0:
            print(f"step {i}, err_s_label: {err_label.item():.3f}, err_domain: {err_domain.item():.3f}")
    with torch.no_grad():
        t_img, t_label = draw(600, 1, rng, world)
        print("metric:", (net(t_img, 0.0)[0].argmax(1) == t_label).float().mean().item())
