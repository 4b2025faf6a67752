"""With pred_len=1 the model gives (batch, 1) and the loader (batch,): MSELoss only warns, and I had switched warnings off.

expect: loss-broadcast
line: loss = criterion(pred, y_batch)
source: https://github.com/jsboige/CoursIA/pull/926
metric: correlation of forecasts and truth on test days, higher is better
"""

import argparse
import warnings

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class PatchForecaster(nn.Module):
    def __init__(self, seq_len, patch, d_model, pred_len):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, d_model)
        self.pos = nn.Parameter(torch.zeros(seq_len // patch, d_model))
        self.encoder = nn.TransformerEncoderLayer(d_model, 2, 2 * d_model, dropout=0.0, batch_first=True)
        self.head = nn.Linear(d_model * (seq_len // patch), pred_len)

    def forward(self, x):
        x = x.unfold(1, self.patch, self.patch)
        x = self.encoder(self.embed(x) + self.pos)
        return self.head(x.flatten(1))


def build(seq_len, pred_len, rng):
    n = 1800
    s = np.zeros(n)
    for t in range(2, n):
        s[t] = 1.4 * s[t - 1] - 0.75 * s[t - 2] + 0.5 * rng.standard_normal()
    s = (s - s.mean()) / s.std()
    x = np.stack([s[i : i + seq_len] for i in range(n - seq_len - pred_len + 1)])
    y = np.stack([s[i + seq_len : i + seq_len + pred_len] for i in range(n - seq_len - pred_len + 1)])
    if pred_len == 1:
        y = y[:, 0]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def train_one(args):
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    x, y = build(args.seq_len, args.pred_len, rng)
    split = 1400
    train = DataLoader(TensorDataset(x[:split], y[:split]), batch_size=64, shuffle=True)
    model = PatchForecaster(args.seq_len, 4, 24, args.pred_len)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x_batch, y_batch in train:
            optimizer.zero_grad()
            pred = model(x_batch)
            loss = criterion(pred, y_batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: train {total / len(train):.4f}")
    model.eval()
    with torch.no_grad():
        pred = model(x[split:]).flatten().numpy()
    return np.corrcoef(pred, y[split:].flatten().numpy())[0, 1]


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--seq_len", type=int, default=24)
    p.add_argument("--pred_len", type=int, default=1)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=2e-3)
    print(f"metric: {train_one(p.parse_args()):.4f}")
