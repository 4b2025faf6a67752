"""A sparse autoencoder over features that overlap: only the largest codes pass, directions of the decoder are kept at length one.

expect: nothing
style: tied start, weights changed under no_grad after the step, dead codes revived by an auxiliary term, most codes zero
metric: share of true features that are recovered, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class TopKSAE(nn.Module):
    def __init__(self, d, codes, k):
        super().__init__()
        self.k = k
        self.w_dec = nn.Parameter(F.normalize(torch.randn(codes, d), dim=1))
        self.w_enc = nn.Parameter(self.w_dec.detach().T.clone())
        self.b_pre, self.b_enc = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(codes))
        self.register_buffer("silent", torch.zeros(codes))

    def forward(self, x):
        pre = (x - self.b_pre) @ self.w_enc + self.b_enc
        top = pre.topk(self.k, dim=1)
        code = torch.zeros_like(pre).scatter(1, top.indices, F.relu(top.values))
        return code @ self.w_dec + self.b_pre, code, pre


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    d, features = 24, 40
    truth = F.normalize(torch.randn(features, d), dim=1)

    def activations(n):
        on = torch.rand(n, features) < 0.06
        return (on * (0.5 + torch.rand(n, features))) @ truth + 0.02 * torch.randn(n, d)

    model = TopKSAE(d, 64, k=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        x = activations(256)
        out, code, pre = model(x)
        loss = (out - x).pow(2).sum(1).mean()
        model.silent = torch.where((code > 0).any(0), torch.zeros(()), model.silent + 1)
        dead = model.silent > 30
        if dead.any():
            rest = (x - out).detach()
            loss = (
                loss + 0.1 * (F.relu(pre[:, dead]) @ model.w_dec[dead] - rest).pow(2).sum(1).mean()
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.w_dec.copy_(F.normalize(model.w_dec, dim=1))
        if step % 500 == 0:
            print(f"step {step} mse {(out - x).pow(2).mean().item():.5f} dead {int(dead.sum())}")
    with torch.no_grad():
        print("metric:", ((truth @ model.w_dec.T).max(1).values > 0.9).float().mean().item())


if __name__ == "__main__":
    main()
