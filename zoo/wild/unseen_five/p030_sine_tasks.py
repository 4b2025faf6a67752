"""MAML on sines: one step of gradient descent inside, through which the outer step differentiates.

expect: nothing
style: functional_call, autograd.grad with create_graph, loss after adaptation only
metric: squared error on new tasks after one step, lower is better
"""

import argparse
import math

import torch
from torch import nn
from torch.func import functional_call


def task():
    amplitude, phase = 0.5 + 2 * torch.rand(1), math.pi * torch.rand(1)
    return lambda x: amplitude * torch.sin(x + phase)


def draw(n):
    return 10 * torch.rand(n, 1) - 5


def adapt(net, params, x, y, rate=0.05, second_order=True, steps=1):
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(net, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=second_order)
        params = {name: p - rate * g for (name, p), g in zip(params.items(), grads)}
    return params


def main(seed, meta_steps):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    meta = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(meta_steps):
        total = 0.0
        for _ in range(6):
            f = task()
            xs, xq = draw(10), draw(20)
            fast = adapt(net, dict(net.named_parameters()), xs, f(xs))
            total = total + nn.functional.mse_loss(functional_call(net, fast, (xq,)), f(xq))
        meta.zero_grad()
        (total / 6).backward()
        meta.step()
        if step % 100 == 0:
            print("meta step", step, "loss", total.item() / 6)
    errors = []
    for _ in range(100):
        f = task()
        xs, xq = draw(10), draw(100)
        fast = adapt(net, dict(net.named_parameters()), xs, f(xs), second_order=False, steps=3)
        with torch.no_grad():
            errors.append(nn.functional.mse_loss(functional_call(net, fast, (xq,)), f(xq)).item())
    return sum(errors) / len(errors)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--meta-steps", type=int, default=500)
    args = parser.parse_args()
    print("metric:", main(args.seed, args.meta_steps))
