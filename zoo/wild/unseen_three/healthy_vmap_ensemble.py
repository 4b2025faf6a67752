"""Eight regressors trained at once with torch.func: stacked parameters, functional_call, vmap.

expect: nothing
style: invites 'missing optimizer', 'unused module' and 'stale optimizer': the module on the meta device is only a skeleton, its own parameters never get a gradient; the stacked copies are what the optimizer has
"""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler
from torch.func import functional_call, stack_module_state, vmap


class MLP(nn.Module):
    def __init__(self, d, h=48):
        super().__init__()
        self.fc1, self.fc2, self.out = nn.Linear(d, h), nn.Linear(h, h), nn.Linear(h, 1)

    def forward(self, x):
        x = F.gelu(self.fc1(x))
        x = F.gelu(self.fc2(x))
        return self.out(x).squeeze(-1)


def get_data(seed):
    X, y = make_friedman1(n_samples=2400, n_features=8, noise=1.0, random_state=seed)
    sx, sy = StandardScaler().fit(X[:1800]), StandardScaler().fit(y[:1800, None])
    X = torch.tensor(sx.transform(X), dtype=torch.float32)
    y = torch.tensor(sy.transform(y[:, None])[:, 0], dtype=torch.float32)
    return X[:1800], y[:1800], X[1800:], y[1800:]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--members", type=int, default=8)
    ap.add_argument("--steps", type=int, default=700)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    X, y, Xt, yt = get_data(args.seed)

    models = [MLP(X.shape[1]) for _ in range(args.members)]
    params, buffers = stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")

    def member_loss(p, b, x, t):
        return F.mse_loss(functional_call(skeleton, (p, b), (x,)), t)

    def member_predict(p, b, x):
        return functional_call(skeleton, (p, b), (x,))

    optimizer = torch.optim.AdamW(params.values(), lr=2e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(args.steps):
        # each member draws its own bootstrap batch
        idx = torch.randint(0, len(X), (args.members, 64))
        losses = vmap(member_loss)(params, buffers, X[idx], y[idx])
        optimizer.zero_grad()
        losses.sum().backward()          # members are independent: the sum keeps every member's own gradient
        optimizer.step()
        scheduler.step()
        if step % 100 == 99:
            print("step %4d  %s" % (step + 1, " ".join("%.3f" % l for l in losses.tolist())))

    with torch.no_grad():
        out = vmap(member_predict, in_dims=(0, 0, None))(params, buffers, Xt)
        singles = 1 - ((out - yt) ** 2).mean(1) / yt.var()
        r2 = 1 - ((out.mean(0) - yt) ** 2).mean() / yt.var()
    print("single members %.4f" % singles.mean().item())
    print("metric: %.4f" % r2.item())


if __name__ == "__main__":
    main()
