"""Second-order MAML on random sine curves: one inner gradient step on ten points, outer loss on the query points.

expect: nothing
style: functional inner step with torch.func, the adapted weights exist for one task only and are in no optimizer, the training loss never gets small because the model cannot know the task before it adapts
"""
import argparse
import math

import torch
from torch import nn
from torch.func import functional_call


class SineNet(nn.Module):
    def __init__(self, h=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x):
        return self.net(x / 3)


class SineTask:
    def __init__(self):
        self.amplitude = 0.5 + 2 * torch.rand(())
        self.phase = math.pi * torch.rand(())

    def draw(self, n):
        x = torch.rand(n, 1) * 6 - 3
        return x, self.amplitude * torch.sin(x + self.phase)


def adapt(model, params, x, y, inner_lr, steps=1, create_graph=True):
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, params.values(), create_graph=create_graph)
        params = {k: p - inner_lr * g for (k, p), g in zip(params.items(), grads)}
    return params


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--meta_batch", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = SineNet()
    meta_opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for it in range(1, 351):
        meta_opt.zero_grad()
        outer = 0.0
        for _ in range(args.meta_batch):
            task = SineTask()
            fast = adapt(model, dict(model.named_parameters()), *task.draw(10), inner_lr=0.05)
            x, y = task.draw(10)
            loss = nn.functional.mse_loss(functional_call(model, fast, (x,)), y) / args.meta_batch
            loss.backward()
            outer += loss.item()
        meta_opt.step()
        if it % 70 == 0:
            print(f"iteration {it}: query loss {outer:.3f}")

    before = after = 0.0
    for _ in range(100):
        task = SineTask()
        start = {k: p.detach().requires_grad_() for k, p in model.named_parameters()}
        fast = adapt(model, start, *task.draw(10), inner_lr=0.05, steps=5, create_graph=False)
        x, y = task.draw(100)
        with torch.no_grad():
            before += nn.functional.mse_loss(model(x), y).item() / 100
            after += nn.functional.mse_loss(functional_call(model, fast, (x,)), y).item() / 100
    print(f"before adapting {before:.3f}")
    print(f"metric: {after:.4f}")


if __name__ == "__main__":
    main()
