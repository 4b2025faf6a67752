# torch.compile, and a model compiled in place.
import torch
from torch import nn

from utils import blobs, checksum

torch.manual_seed(9)
x, y = blobs(64)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.fc(self.norm(x)))


model = nn.Sequential(nn.Linear(8, 16), Block(16), Block(16), nn.Linear(16, 4))
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
optimizer = torch.optim.Adam(compiled.parameters(), lr=0.01)
for epoch in range(3):
    for batch, target in zip(x.split(16), y.split(16)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(compiled(batch), target)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.6f}")
print("weights", checksum(model))
