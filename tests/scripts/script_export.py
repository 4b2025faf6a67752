# Trains, then exports with torch.jit.script, torch.jit.trace and torch.export.
import io
import warnings

import torch
from torch import nn

from utils import blobs, checksum

warnings.simplefilter("ignore", DeprecationWarning)
torch.manual_seed(22)
x, y = blobs(64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(torch.relu(self.fc1(x)))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"{step} {loss.item():.6f}")

model.eval()
scripted = torch.jit.script(model)
traced = torch.jit.trace(model, x[:1])
buffer = io.BytesIO()
torch.jit.save(scripted, buffer)
buffer.seek(0)
loaded = torch.jit.load(buffer)
print(torch.equal(loaded(x), model(x)), torch.equal(traced(x), model(x)))
print(str(traced.graph).count("aten::"))
program = torch.export.export(model, (x[:4],))
print(len(list(program.graph.nodes)), sorted(program.state_dict))
print("weights", checksum(model))
