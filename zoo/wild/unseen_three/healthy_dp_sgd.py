"""Differentially private SGD by hand: per-sample gradients, each clipped to 1, summed, with Gaussian noise.

expect: nothing
style: invites 'clipping too tight', 'missing backward' and a noisy, odd update: clipping nearly every sample is the mechanism that bounds sensitivity; gradients come from vmap(grad) and are written to .grad
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.func import functional_call, grad_and_value, vmap

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
ap.add_argument("--max-grad-norm", type=float, default=1.0)
ap.add_argument("--noise-multiplier", type=float, default=0.8)
ap.add_argument("--lot", type=int, default=140, help="expected size of a Poisson-sampled lot")
ap.add_argument("--steps", type=int, default=250)
ap.add_argument("--lr", type=float, default=0.6)
args = ap.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
X = torch.tensor(digits.data / 8.0 - 1.0, dtype=torch.float32)
y = torch.tensor(digits.target)
perm = torch.randperm(len(X))
X, y = X[perm], y[perm]
X_train, y_train, X_test, y_test = X[:1400], y[:1400], X[1400:], y[1400:]

model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)


def sample_loss(params, x, target):
    logits = functional_call(model, params, (x.unsqueeze(0),))
    return F.cross_entropy(logits, target.unsqueeze(0))


per_sample = vmap(grad_and_value(sample_loss), in_dims=(None, 0, 0))

for step in range(args.steps):
    chosen = torch.rand(len(X_train)) < args.lot / len(X_train)
    params = {k: v.detach() for k, v in model.named_parameters()}
    grads, losses = per_sample(params, X_train[chosen], y_train[chosen])

    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()], 1).norm(dim=1)
    factor = (args.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
    optimizer.zero_grad()
    for name, p in model.named_parameters():
        g = torch.einsum("n,n...->...", factor, grads[name])
        g = g + args.noise_multiplier * args.max_grad_norm * torch.randn_like(g)
        p.grad = g / args.lot
    optimizer.step()

    if step % 50 == 49:
        with torch.no_grad():
            acc = (model(X_test).argmax(1) == y_test).float().mean().item()
        print(f"step {step + 1} loss {losses.mean().item():.3f} clipped {(factor < 1).float().mean().item():.2f} test {acc:.4f}")

print(f"metric: {acc:.4f}")
