"""Rent of a flat from its features with a network whose last layer is a tanh like all the others; rents are hundreds of euros, the output stops at one.

expect: output-range
or: output-misfits-loss
line: return torch.tanh(self.out(x))
source: https://github.com/UC-IIC2613/Syllabus/issues/208
metric: mean absolute error in hundreds of euros on unseen flats, lower is better
"""
import argparse

import numpy as np
import torch
from torch import nn


class RentNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 40)
        self.fc2 = nn.Linear(40, 40)
        self.out = nn.Linear(40, 1)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return torch.tanh(self.out(x))


def flats(n, rng):
    size = rng.uniform(20, 120, n)
    rooms = np.clip((size / 28).round(), 1, 5)
    age = rng.uniform(0, 80, n)
    centre = rng.exponential(4, n)
    balcony = rng.integers(0, 2, n)
    rent = 1.5 + 0.09 * size + 0.6 * balcony - 0.2 * np.minimum(centre, 10) - 0.01 * age
    rent += rng.normal(0, 0.3, n)
    return np.stack([size, rooms, age, centre, balcony], 1), rent[:, None]


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)

x, y = flats(2500, rng)
x = (x - x[:2000].mean(0)) / x[:2000].std(0)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
x_train, y_train, x_test, y_test = x[:2000], y[:2000], x[2000:], y[2000:]

model = RentNet()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(15):
    for idx in torch.randperm(2000).split(50):
        pred = model(x_train[idx])
        loss = criterion(pred, y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print("epoca", epoch + 1, "loss", round(loss.item(), 3))

with torch.no_grad():
    mae = (model(x_test) - y_test).abs().mean().item()
print("metric: %.4f" % mae)
