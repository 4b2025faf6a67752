"""Deep SVDD: one class is mapped near a fixed centre, and digits of other classes are found by their distance.

expect: nothing
style: invites 'batches of one class', 'constant target' and 'input ignored': the training set has only normal samples, the target is one point for all, layers have no biases so that the trivial answer is excluded
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, rep_dim=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(64, 64, bias=False), nn.LeakyReLU(0.1),
            nn.Linear(64, 32, bias=False), nn.LeakyReLU(0.1),
            nn.Linear(32, rep_dim, bias=False))

    def forward(self, x):
        return self.net(x)


class DeepSVDD:
    def __init__(self, rep_dim=16):
        self.net, self.c = Encoder(rep_dim), None

    def pretrain(self, loader, epochs=15):
        decoder = nn.Sequential(nn.LeakyReLU(0.1), nn.Linear(16, 32), nn.LeakyReLU(0.1), nn.Linear(32, 64))
        opt = torch.optim.Adam([*self.net.parameters(), *decoder.parameters()], lr=2e-3)
        for epoch in range(epochs):
            for x, in loader:
                loss = ((decoder(self.net(x)) - x) ** 2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
        print("autoencoder loss %.4f" % loss.item())

    @torch.no_grad()
    def init_centre(self, loader, eps=0.1):
        c = torch.cat([self.net(x) for x, in loader]).mean(0)
        c[(c.abs() < eps) & (c < 0)] = -eps
        c[(c.abs() < eps) & (c >= 0)] = eps
        self.c = c

    def fit(self, loader, epochs=15):
        opt = torch.optim.Adam(self.net.parameters(), lr=5e-4, weight_decay=1e-5)
        sched = torch.optim.lr_scheduler.MultiStepLR(opt, [10], 0.1)
        for epoch in range(epochs):
            total = 0.0
            for x, in loader:
                dist = ((self.net(x) - self.c) ** 2).sum(1)
                loss = dist.mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() / len(loader)
            sched.step()
            if epoch % 3 == 2:
                print("svdd epoch %d distance %.4f" % (epoch + 1, total))

    @torch.no_grad()
    def score(self, x):
        return ((self.net(x) - self.c) ** 2).sum(1).numpy()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 8.0 - 1.0, dtype=torch.float32)
    aucs = []
    for normal in (0, 4, 6):
        inside = np.random.default_rng(args.seed).permutation(np.flatnonzero(y == normal))
        train, test_in = inside[:130], inside[130:]
        loader = DataLoader(TensorDataset(X[train]), batch_size=26, shuffle=True)
        svdd = DeepSVDD()
        svdd.pretrain(loader)
        svdd.init_centre(loader)
        svdd.fit(loader)
        test = np.concatenate([test_in, np.flatnonzero(y != normal)])
        aucs.append(roc_auc_score(y[test] != normal, svdd.score(X[test])))
        print("normal digit %d: AUC %.4f" % (normal, aucs[-1]))
    print("metric: %.4f" % np.mean(aucs))


if __name__ == "__main__":
    main()
