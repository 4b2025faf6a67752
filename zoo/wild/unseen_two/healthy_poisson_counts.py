"""Counts of visitors with the Poisson loss: without the factorial it is hugely negative, and that is right.

expect: nothing
metric: correlation of predicted and true counts on test days, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def visitors(n, rng):
    weekday, sun, holiday = rng.integers(0, 7, n), rng.beta(2, 2, n), rng.random(n) < 0.1
    rate = 4.5 + 0.5 * (weekday >= 5) + 1.2 * sun - 0.8 * sun * (weekday < 5) + 0.6 * holiday
    count = rng.poisson(np.exp(rate))
    x = np.column_stack([np.eye(7)[weekday], sun, holiday])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(count, dtype=torch.float32)


class PoissonNet(nn.Module):
    def __init__(self, n_in, mean_count):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU())
        self.log_rate = nn.Linear(32, 1)
        nn.init.constant_(self.log_rate.bias, float(np.log(mean_count)))

    def forward(self, x):
        return self.log_rate(self.body(x)).squeeze(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    x, count = visitors(2000, rng)
    loader = DataLoader(TensorDataset(x, count), batch_size=50, shuffle=True)
    model = PoissonNet(x.shape[1], count.mean().item())
    criterion = nn.PoissonNLLLoss(log_input=True, full=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(12):
        losses = []
        for xb, yb in loader:
            loss = criterion(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch:2d} loss {np.mean(losses):.2f}")
    x, count = visitors(500, rng)
    with torch.no_grad():
        predicted = model(x).exp()
    print("metric:", float(np.corrcoef(predicted.numpy(), count.numpy())[0, 1]))
