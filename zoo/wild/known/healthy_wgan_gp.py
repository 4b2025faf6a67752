"""Wasserstein GAN with gradient penalty on two moons: the critic is trained five times as often and its loss is negative.

expect: nothing
style: WGAN-GP, second-order penalty, critic without sigmoid (looks like a negative loss)
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import autograd, nn

LAMBDA, CRITIC_ITERS, BATCH = 1.0, 5, 64


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, n_out))


def calc_gradient_penalty(netD, real, fake):
    alpha = torch.rand(len(real), 1)
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    gradients = autograd.grad(netD(interpolates).sum(), interpolates, create_graph=True)[0]
    return LAMBDA * ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def inf_train_gen(rng):
    while True:
        data, _ = make_moons(BATCH, noise=0.05, random_state=rng)
        yield torch.tensor((data - [0.5, 0.25]) / [0.87, 0.5], dtype=torch.float32)


def main(seed):
    torch.manual_seed(seed)
    data = inf_train_gen(np.random.RandomState(seed))
    netG, netD = mlp(3, 2), mlp(2, 1)
    optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
    real = torch.cat([next(data) for _ in range(6)])

    def energy():
        with torch.no_grad():
            fake = netG(torch.randn(len(real), 3))
        return (2 * torch.cdist(fake, real).mean() - torch.cdist(fake, fake).mean() - torch.cdist(real, real).mean()).item()

    start = energy()
    for iteration in range(110):
        for p in netD.parameters():
            p.requires_grad = True
        for _ in range(CRITIC_ITERS):
            x = next(data)
            with torch.no_grad():
                fake = netG(torch.randn(BATCH, 3))
            D_cost = netD(fake).mean() - netD(x).mean() + calc_gradient_penalty(netD, x, fake)
            optimizerD.zero_grad()
            D_cost.backward()
            optimizerD.step()
        for p in netD.parameters():
            p.requires_grad = False  # to avoid computation
        G_cost = -netD(netG(torch.randn(BATCH, 3))).mean()
        optimizerG.zero_grad()
        G_cost.backward()
        optimizerG.step()
        if iteration % 30 == 0:
            print("iteration", iteration, "critic", round(D_cost.item(), 4), "generator", round(G_cost.item(), 4))
    print("metric: %.4f (started at %.4f)" % (energy(), start))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args().seed)
