# A learning rate far too high: the loss becomes NaN, and nobody stops it.
import torch
from torch import nn

from utils import blobs, checksum

torch.manual_seed(32)
x, y = blobs(64)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e6)
for step in range(12):
    optimizer.zero_grad()
    loss = (model(x).exp().sum(1).log() - model(x).gather(1, y[:, None])[:, 0]).mean()
    loss.backward()
    optimizer.step()
    print(f"{step} {loss.item():.6f}")
print("weights", checksum(model))
