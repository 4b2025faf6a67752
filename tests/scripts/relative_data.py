# Data by a path relative to where it is started, and settings beside the script.
import csv
import json
import os

import torch
from torch import nn

from utils import checksum

with open("data/points.csv") as stream:
    rows = [[float(cell) for cell in row] for row in csv.reader(stream)]
with open(os.path.join(os.path.dirname(__file__), "data", "settings.json")) as stream:
    settings = json.load(stream)

table = torch.tensor(rows)
x, y = table[:, :3], table[:, 3:]
torch.manual_seed(settings["seed"])
model = nn.Sequential(nn.Linear(3, settings["width"]), nn.ReLU(), nn.Linear(settings["width"], 1))
optimizer = torch.optim.Adagrad(model.parameters(), lr=settings["lr"])
for epoch in range(settings["epochs"]):
    optimizer.zero_grad()
    loss = nn.L1Loss()(model(x), y)
    loss.backward()
    optimizer.step()
    print(epoch, f"{loss.item():.6f}")
print("weights", checksum(model))
