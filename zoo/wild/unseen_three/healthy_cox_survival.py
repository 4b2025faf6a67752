"""DeepSurv: Cox partial likelihood over the whole cohort, sorted by time, with censoring.

expect: nothing
style: invites 'samples mixed', 'sorted data', 'repeated batch' and 'targets not used': the partial likelihood compares each patient with all still at risk, so the whole cohort, in order of time, is the batch; the times enter by their order only
"""
import argparse

import numpy as np
import torch
import torch.nn as nn


class DeepSurv(nn.Module):
    def __init__(self, in_dim, hidden=(32, 16), drop=0.2):
        super().__init__()
        layers, d = [], in_dim
        for h in hidden:
            layers += [nn.Linear(d, h), nn.ReLU(), nn.Dropout(drop)]
            d = h
        layers.append(nn.Linear(d, 1, bias=False))   # a constant cancels in the partial likelihood
        self.model = nn.Sequential(*layers)

    def forward(self, x):
        return self.model(x).squeeze(-1)


def neg_partial_log_likelihood(risk, event):
    """Rows must be sorted by descending time: the risk set of row i is rows 0..i."""
    log_cum = torch.logcumsumexp(risk, dim=0)
    return -((risk - log_cum) * event).sum() / event.sum()


def c_index(risk, time, event):
    earlier = (time[:, None] < time[None]) & event.bool()[:, None]
    conc = (risk[:, None] > risk[None]).float()
    return (conc * earlier).sum().item() / earlier.sum().item()


def cohort(n, rng):
    x = rng.normal(size=(n, 10))
    log_hazard = 1.2 * x[:, 0] - 0.8 * x[:, 1] + 1.0 * x[:, 2] * x[:, 3]
    t = rng.exponential(1 / np.exp(log_hazard))
    c = rng.exponential(2.0, size=n)
    time, event = np.minimum(t, c), (t <= c).astype(np.float32)
    order = np.argsort(-time)
    to = lambda a: torch.tensor(a[order], dtype=torch.float32)
    return to(x), to(time), to(event), to(log_hazard)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=150)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    x, time, event, _ = cohort(3000, rng)
    xv, tv, ev, oracle = cohort(800, rng)

    net = DeepSurv(x.shape[1])
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        net.train()
        loss = neg_partial_log_likelihood(net(x), event)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if epoch % 15 == 14:
            net.eval()
            with torch.no_grad():
                r = net(xv)
                vl = neg_partial_log_likelihood(r, ev).item()
                print(f"epoch {epoch + 1}: train {loss.item():.4f} valid {vl:.4f} c-index {c_index(r, tv, ev):.4f}")
    print(f"oracle c-index {c_index(oracle, tv, ev):.4f}")
    print(f"metric: {c_index(r, tv, ev):.4f}")


if __name__ == "__main__":
    main()
