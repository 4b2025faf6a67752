"""A posterior by Langevin steps: noise is added to every update, the rate decays by a power, samples are averaged.

expect: nothing
style: update by hand with p.grad, loss as a sum over the data, a walk that never settles on purpose
metric: test negative log-likelihood, lower is better
"""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons

# %%
seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)
x, y = make_moons(900, noise=0.25, random_state=seed)
x, y = torch.tensor(x, dtype=torch.float) - 0.4, torch.tensor(y)
x, y, xt, yt = x[:400], y[:400], x[400:], y[400:]
N = len(x)

# %%
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))


def rate(t, a=6e-4, b=50.0, gamma=0.4):
    return a * (1 + t / b) ** -gamma


samples, energies = [], []
for t in range(4000):
    idx = torch.randint(N, (50,))
    log_prior = -0.5 * sum((p**2).sum() for p in net.parameters()) / 4
    log_like = -F.cross_entropy(net(x[idx]), y[idx]) * N
    net.zero_grad()
    (-(log_prior + log_like)).backward()
    eps = rate(t)
    with torch.no_grad():
        for p in net.parameters():
            p -= eps / 2 * p.grad
            p += eps**0.5 * torch.randn_like(p)
    energies.append(-log_like.item() / N)
    if t >= 1500 and t % 25 == 0:
        with torch.no_grad():
            samples.append(net(xt).softmax(1))
    if t % 500 == 0:
        print(f"t={t} eps={eps:.2e} nll={sum(energies[-50:]) / len(energies[-50:]):.3f}")

# %%
mean = torch.stack(samples).mean(0)
print("acc:", (mean.argmax(1) == yt).float().mean().item())
print("metric:", F.nll_loss(mean.log(), yt).item())
