"""The target is a price of some 250,000 dollars as it stands: the output creeps up from zero and does not get there.

expect: target-not-normalized
or: learning-rate-too-low
line: y_train = torch.tensor(price[train]
source: https://stats.stackexchange.com/questions/409000/should-we-normalize-target-data-as-well-as-input-data
metric: test R2, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler


def houses(n, rng):
    rooms = rng.normal(6, 1, n)
    income = rng.gamma(4, 1.0, n)
    age = rng.uniform(0, 50, n)
    distance = rng.exponential(10, n)
    price = 60000 * np.log1p(income) + 22000 * rooms - 900 * age - 2500 * distance + 90 * age * (income > 5) * 8 + 60000
    return np.stack([rooms, income, age, distance], 1), price + rng.normal(0, 8000, n)


class Regressor(nn.Module):
    def __init__(self, inputs, width=64):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    features, price = houses(2500, rng)
    train, test = np.arange(2000), np.arange(2000, 2500)
    scaler = StandardScaler().fit(features[train])
    x_train = torch.tensor(scaler.transform(features[train]), dtype=torch.float32)
    x_test = torch.tensor(scaler.transform(features[test]), dtype=torch.float32)
    y_train = torch.tensor(price[train], dtype=torch.float32)

    model = Regressor(features.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        losses = []
        for batch in torch.randperm(len(x_train)).split(50):
            loss = criterion(model(x_train[batch]), y_train[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 5 == 0:
            print("epoch", epoch, "loss", np.mean(losses))

    with torch.no_grad():
        predicted = model(x_test).numpy()
    print("metric:", r2_score(price[test], predicted))


if __name__ == "__main__":
    main()
