"""Evolution strategies: a two-joint arm learns to reach a point, by random perturbations and no gradient.

expect: nothing
style: no loss, no backward, no optimizer; the parameters live in one flat vector that is written back into the module by hand
"""
import argparse
import math

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def reach(policy, targets, steps=12):
    """Two joint angles moved by the policy; score is minus the distance at the end."""
    angles = torch.zeros(len(targets), 2)
    for _ in range(steps):
        obs = torch.cat([angles.sin(), angles.cos(), targets], 1)
        angles = angles + 0.4 * torch.tanh(policy(obs))
    elbow = torch.stack([angles[:, 0].cos(), angles[:, 0].sin()], 1)
    total = angles.sum(1)
    hand = elbow + torch.stack([total.cos(), total.sin()], 1)
    return -(hand - targets).norm(dim=1).mean()


def random_targets(n):
    r = 0.6 + 1.2 * torch.rand(n)
    a = (torch.rand(n) - 0.5) * math.pi
    return torch.stack([r * a.cos(), r * a.sin()], 1)


@torch.no_grad()
def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    cli.add_argument("--pairs", type=int, default=12)
    cli.add_argument("--sigma", type=float, default=0.1)
    args = cli.parse_args()
    torch.manual_seed(args.seed)
    policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    test_targets = random_targets(400)
    print(f"before: {-reach(policy, test_targets).item():.3f}")
    theta = parameters_to_vector(policy.parameters()).clone()
    velocity = torch.zeros_like(theta)
    for generation in range(1, 131):
        targets = random_targets(64)
        noise = torch.randn(args.pairs, len(theta))
        scores = []
        for sign in (1, -1):
            for eps in noise:
                vector_to_parameters(theta + sign * args.sigma * eps, policy.parameters())
                scores.append(reach(policy, targets))
        scores = torch.stack(scores).view(2, args.pairs)
        advantage = scores[0] - scores[1]
        gradient = (advantage / (advantage.std() + 1e-8)) @ noise / args.pairs
        velocity = 0.8 * velocity + gradient
        theta = theta + 0.05 * velocity
        if generation % 26 == 0:
            print(f"generation {generation}: {-scores.mean().item():.3f}")
    vector_to_parameters(theta, policy.parameters())
    print(f"metric: {-reach(policy, test_targets).item():.4f}")


if __name__ == "__main__":
    main()
