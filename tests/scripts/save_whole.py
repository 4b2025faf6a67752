# Saves and loads the whole model, the optimizer and a deep copy; goes on with what was loaded.
import copy
import os
import pickle
import tempfile

import torch
from torch import nn

from utils import blobs, checksum


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.fc(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Residual(8) for _ in range(3))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train(model, optimizer, x, y, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(21)
x, y = blobs(64)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
print(f"first {train(model, optimizer, x, y, 4):.6f}")
path = os.path.join(tempfile.mkdtemp(), "model.pt")
torch.save({"model": model, "optimizer": optimizer}, path)
print(os.path.getsize(path) > 1000, sorted(vars(model.head)))

loaded = torch.load(path, weights_only=False)
model, optimizer = loaded["model"], loaded["optimizer"]
print(f"second {train(model, optimizer, x, y, 4):.6f}")
twin = copy.deepcopy(model)
again = pickle.loads(pickle.dumps(model))
print(checksum(twin) == checksum(model) == checksum(again))
print("weights", checksum(model))
