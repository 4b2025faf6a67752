# Sets what torch reads when it is imported.
import os
import sys

assert "torch" not in sys.modules
assert "numpy" not in sys.modules
os.environ["OMP_NUM_THREADS"] = "2"
os.environ["TORCH_SHOW_CPP_STACKTRACES"] = "0"

import torch  # noqa: E402
from torch import nn  # noqa: E402

from utils import blobs, checksum  # noqa: E402

print("threads", torch.get_num_threads())
torch.set_num_threads(1)
torch.manual_seed(24)
x, y = blobs(64)
model = nn.Sequential(nn.Linear(8, 8), nn.Hardswish(), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"{step} {loss.item():.6f}")
print("weights", checksum(model))
