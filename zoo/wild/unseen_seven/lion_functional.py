"""Training without an optimizer object: parameters are a dict, gradients come from torch.func, the update is Lion.

expect: nothing
style: functional, weights replaced and not changed in place, modules used only for their shapes
metric: test error, lower is better
"""

import argparse

import torch
from torch import nn
from torch.func import functional_call, grad_and_value


def target(x):
    return torch.sin(3 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]


def lion(params, grads, state, lr, wd=0.02, b1=0.9, b2=0.99):
    fresh, moved = {}, {}
    for name, p in params.items():
        m, g = state[name], grads[name]
        fresh[name] = p - lr * ((b1 * m + (1 - b1) * g).sign() + wd * p)
        moved[name] = b2 * m + (1 - b2) * g
    return fresh, moved


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    params = {name: p.detach().clone() for name, p in net.named_parameters()}
    state = {name: torch.zeros_like(p) for name, p in params.items()}

    def objective(params, x, y):
        return nn.functional.huber_loss(functional_call(net, params, (x,)), y)

    step_fn = grad_and_value(objective)
    for step in range(args.steps):
        x = torch.rand(96, 3) * 2 - 1
        grads, loss = step_fn(params, x, target(x) + 0.1 * torch.randn(96, 1))
        params, state = lion(params, grads, state, args.lr * (1 - step / args.steps))
        if step % 300 == 0:
            print(f"step {step:5d}  huber {loss.item():.5f}")
    x = torch.rand(3000, 3) * 2 - 1
    with torch.no_grad():
        print(
            "metric:", nn.functional.mse_loss(functional_call(net, params, (x,)), target(x)).item()
        )


if __name__ == "__main__":
    main()
