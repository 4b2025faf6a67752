"""Anomaly detection with a GAN: the latent loss is taken of features of a detached fake, so it trains nothing in the generator.

expect: term-without-gradient
line: feat_fake = netd.features(fake.detach())
source: https://github.com/samet-akcay/skip-ganomaly/issues/5
metric: distance between the features of an image and its reconstruction, lower is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class NetG(nn.Module):
    def __init__(self, nz=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.LeakyReLU(0.2), nn.Linear(48, nz))
        self.decoder = nn.Sequential(nn.Linear(nz, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


class NetD(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(64, 48), nn.LeakyReLU(0.2), nn.Linear(48, 32), nn.LeakyReLU(0.2))
        self.classifier = nn.Linear(32, 1)

    def forward(self, x):
        return self.classifier(self.features(x)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--niter", type=int, default=30)
    parser.add_argument("--w_adv", type=float, default=0.2)
    parser.add_argument("--w_con", type=float, default=5.0)
    parser.add_argument("--w_lat", type=float, default=5.0)
    opt = parser.parse_args()
    torch.manual_seed(opt.seed)
    digits = load_digits()
    normal = torch.tensor(digits.data[digits.target != 7], dtype=torch.float32) / 16
    train, test = normal[:1300], normal[1300:]
    netg, netd = NetG(), NetD()
    bce, l1, l2 = nn.BCEWithLogitsLoss(), nn.L1Loss(), nn.MSELoss()
    optimizer_d = torch.optim.Adam(netd.parameters(), lr=5e-4, betas=(0.5, 0.999))
    optimizer_g = torch.optim.Adam(netg.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for epoch in range(opt.niter):
        for idx in torch.randperm(len(train)).split(64):
            real = train[idx]
            ones, zeros = torch.ones(len(idx)), torch.zeros(len(idx))
            fake = netg(real)
            feat_real = netd.features(real)
            feat_fake = netd.features(fake.detach())

            optimizer_g.zero_grad()
            err_g_adv = bce(netd(fake), ones)
            err_g_con = l1(fake, real)
            err_g_lat = l2(feat_fake, feat_real)
            err_g = opt.w_adv * err_g_adv + opt.w_con * err_g_con + opt.w_lat * err_g_lat
            err_g.backward()
            optimizer_g.step()

            optimizer_d.zero_grad()
            err_d = 0.5 * (bce(netd(real), ones) + bce(netd(fake.detach()), zeros))
            err_d.backward()
            optimizer_d.step()
        if epoch % 6 == 0:
            print(f"[{epoch}/{opt.niter}] D {err_d.item():.3f} adv {err_g_adv.item():.3f} con {err_g_con.item():.3f} lat {err_g_lat.item():.4f}")
    with torch.no_grad():
        a, b = netd.features(test), netd.features(netg(test))
        print("metric:", ((a - b).pow(2).sum() / (a - a.mean(0)).pow(2).sum()).item())


if __name__ == "__main__":
    main()
