"""SimCLR on simulated scenes: two views of each object, NT-Xent over the batch, then a linear probe.

expect: nothing
style: the loss of one sample depends on the whole batch by design and never gets near zero; labels are positions in the batch; the projection head is thrown away for the probe
"""
import argparse
import math

import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn


class Scenes:
    """Eight kinds of object seen through a sensor; position, light and so on change from view to view."""

    def __init__(self):
        self.kinds = torch.randn(8, 6)
        self.mix1 = torch.randn(14, 40) / 14 ** 0.5
        self.mix2 = torch.randn(40, 32) / 40 ** 0.5

    def render(self, content):
        nuisance = 1.5 * torch.randn(len(content), 8)
        return torch.tanh(torch.cat([content, nuisance], 1) @ self.mix1) @ self.mix2

    def objects(self, n):
        y = torch.randint(0, 8, (n,))
        return self.kinds[y] + 0.3 * torch.randn(n, 6), y


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 24))

    def forward(self, x):
        return self.projector(self.encoder(x))


def nt_xent(z1, z2, temperature=0.3):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    n = len(z1)
    target = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, target)


def probe(model, train, test):
    with torch.no_grad():
        f = [model.encoder(x).numpy() for x, _ in (train, test)]
    clf = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)).fit(f[0], train[1])
    return clf.score(f[1], test[1])


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    torch.manual_seed(cli.parse_args().seed)
    scenes, model = Scenes(), SimCLR()

    def labelled(n):
        content, y = scenes.objects(n)
        return scenes.render(content), y

    train, test = labelled(100), labelled(1000)
    print(f"probe of the untrained encoder: {probe(model, train, test):.3f}")
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(1, 401):
        content, _ = scenes.objects(96)
        loss = nt_xent(model(scenes.render(content)), model(scenes.render(content)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f} (chance {math.log(191):.2f})")
    print(f"metric: {probe(model, train, test):.4f}")


if __name__ == "__main__":
    main()
