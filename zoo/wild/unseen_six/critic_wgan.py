"""A Wasserstein GAN with gradient penalty for a mixture: the critic's loss is negative and creeps towards zero.

expect: nothing
style: five critic steps, penalty through autograd.grad, no batch norm, Adam with beta1 of 0
metric: energy distance of samples to data, lower is better
"""

import argparse

import torch
import torch.nn as nn


def target(n):
    centre = torch.tensor([[-1.5, 0.0], [1.5, 0.5], [0.0, 1.5]])[torch.randint(3, (n,))]
    return centre + 0.2 * torch.randn(n, 2)


def net(i, o, width=64):
    return nn.Sequential(nn.Linear(i, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, o))


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    x = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (grad.norm(dim=1) - 1).pow(2).mean()


def energy(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generator-steps", type=int, default=350)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    generator, critic = net(4, 2), net(2, 1)
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
    for step in range(args.generator_steps):
        for _ in range(5):
            real, fake = target(128), generator(torch.randn(128, 4)).detach()
            wasserstein = critic(real).mean() - critic(fake).mean()
            loss_c = -wasserstein + 5 * gradient_penalty(critic, real, fake)
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()
        loss_g = -critic(generator(torch.randn(128, 4))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if step % 50 == 0:
            print(f"[{step}] critic {loss_c.item():.4f} distance {wasserstein.item():.4f}")
    with torch.no_grad():
        print("metric:", energy(generator(torch.randn(1500, 4)), target(1500)))
