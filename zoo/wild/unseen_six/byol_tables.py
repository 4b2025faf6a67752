"""Self-supervision without negatives on a table: an online network predicts a slowly moving target of another corruption of the row.

expect: nothing
style: BYOL, target by exponential average under no_grad, predictor head, linear probe by sklearn
metric: accuracy of a probe with a hundred labels, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression


def corrupt(x, share=0.3):
    """Some columns are taken from other rows."""
    other = x[torch.randperm(len(x))]
    return torch.where(torch.rand_like(x) < share, other, x)


def head(i, o):
    return nn.Sequential(nn.Linear(i, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, o))


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.projector, self.predictor = head(64, 32), head(32, 32)
        self.target = copy.deepcopy(nn.Sequential(self.encoder, self.projector)).requires_grad_(False)

    def regress(self, a, b):
        p = F.normalize(self.predictor(self.projector(self.encoder(a))), dim=1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=1)
        return 2 - 2 * (p * z).sum(1).mean()

    @torch.no_grad()
    def move_target(self, tau=0.98):
        online = nn.Sequential(self.encoder, self.projector)
        for slow, fast in zip(self.target.parameters(), online.parameters()):
            slow.mul_(tau).add_(fast, alpha=1 - tau)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data, labels = load_digits(return_X_y=True)
    x = torch.tensor(data, dtype=torch.float32) / 16
    model = BYOL()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-3, weight_decay=1e-4)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(128):
            a, b = corrupt(x[idx]), corrupt(x[idx])
            loss = (model.regress(a, b) + model.regress(b, a)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.move_target()
        if epoch % 4 == 0:
            print("epoch", epoch, "loss", loss.item())
    model.eval()
    with torch.no_grad():
        z = model.encoder(x).numpy()
    probe = LogisticRegression(max_iter=1000).fit(z[:100], labels[:100])
    print("metric:", probe.score(z[100:], labels[100:]))
