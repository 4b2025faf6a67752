"""The label encoder is fitted anew on the test table: the numbers of the categories are not those of training.

expect: evaluation-encoding
line: encoder.fit_transform(test["town"])
source: https://github.com/scikit-learn/scikit-learn/issues/10324
metric: test R2, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.metrics import r2_score
from sklearn.preprocessing import LabelEncoder
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TOWNS = np.array(["Aalen", "Bonn", "Celle", "Dresden", "Essen", "Fulda", "Gotha", "Hagen", "Ilmenau", "Jena", "Kassel", "Linz"])


def table(n, rng, towns):
    town = rng.choice(towns, n)
    area = rng.normal(0, 1, n)
    age = rng.normal(0, 1, n)
    level = dict(zip(TOWNS, np.random.default_rng(3).normal(0, 1.2, len(TOWNS))))
    price = np.array([level[t] for t in town]) + 0.8 * area - 0.4 * age + 0.3 * area * age + rng.normal(0, 0.2, n)
    return {"town": town, "numbers": np.stack([area, age], 1), "price": price}


class RentModel(nn.Module):
    def __init__(self, categories, dim=6):
        super().__init__()
        self.town = nn.Embedding(categories, dim)
        self.net = nn.Sequential(nn.Linear(dim + 2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, town, numbers):
        return self.net(torch.cat([self.town(town), numbers], dim=1)).squeeze(1)


def tensors(codes, data):
    return torch.tensor(codes), torch.tensor(data["numbers"], dtype=torch.float32), torch.tensor(data["price"], dtype=torch.float32)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)

train = table(2000, rng, TOWNS)
test = table(500, rng, np.delete(TOWNS, [0, 4]))  # nothing came in from two of the towns this month

encoder = LabelEncoder()
train_data = TensorDataset(*tensors(encoder.fit_transform(train["town"]), train))
test_data = tensors(encoder.fit_transform(test["town"]), test)

model = RentModel(len(TOWNS))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.MSELoss()
for epoch in range(args.epochs):
    model.train()
    total = 0.0
    for town, numbers, price in DataLoader(train_data, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = loss_fn(model(town, numbers), price)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(price)
    print(f"epoch {epoch + 1}: training loss {total / len(train_data):.4f}")

model.eval()
with torch.no_grad():
    predicted = model(test_data[0], test_data[1])
print("metric:", r2_score(test_data[2].numpy(), predicted.numpy()))
