# Gradient accumulation: four small batches make one step.
import torch
from torch import nn

from utils import blobs, checksum

ACCUMULATE = 4
torch.manual_seed(5)
x, y = blobs(320)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.1)
criterion = nn.CrossEntropyLoss()

optimizer.zero_grad()
for i, (batch, target) in enumerate(zip(x.split(8), y.split(8))):
    loss = criterion(model(batch), target) / ACCUMULATE
    loss.backward()
    if (i + 1) % ACCUMULATE == 0:
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {(i + 1) // ACCUMULATE}: {loss.item() * ACCUMULATE:.6f}")
print("weights", checksum(model))
