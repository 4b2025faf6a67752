"""Second-order MAML on sinusoids: an inner step through torch.func, an outer Adam step over tasks.

expect: nothing
style: functional_call + vmap, module's own forward only with fast weights, every task's inputs are another function
"""
import argparse

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--inner-lr", type=float, default=0.02)
p.add_argument("--iterations", type=int, default=500)
args = p.parse_args()
torch.manual_seed(args.seed)

net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
for m in net:
    if isinstance(m, nn.Linear):
        nn.init.xavier_normal_(m.weight)
        nn.init.zeros_(m.bias)
with torch.no_grad():
    net[0].weight.mul_(2.0)


def sample_tasks(n, k):
    amp = torch.rand(n, 1, 1) * 1.5 + 0.5
    phase = torch.rand(n, 1, 1) * 3.1416
    x = torch.rand(n, 2 * k, 1) * 6 - 3
    y = amp * torch.sin(x + phase)
    return x[:, :k], y[:, :k], x[:, k:], y[:, k:]


def task_loss(params, x, y):
    return nn.functional.mse_loss(functional_call(net, params, (x,)), y)


def adapt(params, x, y, steps):
    for _ in range(steps):
        g = grad(task_loss)(params, x, y)
        params = {k: params[k] - args.inner_lr * g[k] for k in params}
    return params


def query_loss(params, xs, ys, xq, yq, steps=3):
    return task_loss(adapt(params, xs, ys, steps), xq, yq)


meta_opt = torch.optim.Adam(net.parameters(), lr=2e-3)
ema = None
for it in range(args.iterations):
    batch = sample_tasks(16, 10)
    params = dict(net.named_parameters())
    losses = vmap(query_loss, in_dims=(None, 0, 0, 0, 0))(params, *batch)
    loss = losses.mean()
    meta_opt.zero_grad()
    loss.backward()
    meta_opt.step()
    ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
    if it % 100 == 0:
        print(f"iteration {it:4d} query loss {ema:.4f}")

# evaluation on unseen tasks, before and after adaptation
frozen = {k: v.detach() for k, v in net.named_parameters()}
xs, ys, xq, yq = sample_tasks(200, 10)
before = vmap(task_loss, in_dims=(None, 0, 0))(frozen, xq, yq).mean().item()
after = vmap(lambda *b: query_loss(frozen, *b, steps=5), in_dims=(0, 0, 0, 0))(xs, ys, xq, yq).mean().item()
print(f"before adaptation {before:.3f}, after {after:.3f}")
print(f"metric: {after:.4f}")
