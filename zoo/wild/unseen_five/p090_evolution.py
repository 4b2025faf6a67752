"""Evolution strategies: gradients are estimated from noise without any backward pass and handed to Adam.

expect: nothing
style: no autograd, p.grad set by hand, antithetic sampling, ranks as fitness
metric: mean reward of the centre, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def reward(net, n=64, seed=0):
    """A cart is to come to rest at zero: twenty steps of a point mass."""
    g = torch.Generator().manual_seed(seed)
    x, v = 2 * torch.rand(2, n, generator=g) - 1
    total = torch.zeros(n)
    for _ in range(20):
        a = net(torch.stack([x, v], 1)).squeeze(1).tanh()
        v = v + 0.3 * a
        x = x + 0.3 * v
        total -= x**2 + 0.1 * v**2
    return total.mean().item() / 20


@torch.no_grad()
def main(seed, generations):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    sigma, half = 0.1, 12
    for g in range(generations):
        centre = parameters_to_vector(net.parameters())
        noise = torch.randn(half, len(centre))
        scores = []
        for sign in (1, -1):
            for e in noise:
                vector_to_parameters(centre + sign * sigma * e, net.parameters())
                scores.append(reward(net, seed=g))
        ranks = torch.tensor(scores).argsort().argsort().float() / (2 * half - 1) - 0.5
        estimate = ((ranks[:half] - ranks[half:]) @ noise) / (half * sigma)
        vector_to_parameters(centre, net.parameters())
        start = 0
        for p in net.parameters():
            p.grad = -estimate[start : start + p.numel()].view_as(p).clone()
            start += p.numel()
        optimizer.step()
        if g % 20 == 0:
            print("generation", g, "best", max(scores), "centre", reward(net, seed=12345))
    return reward(net, n=500, seed=999)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generations", type=int, default=120)
    args = parser.parse_args()
    print("metric:", main(args.seed, args.generations))
