# Ends with a code of its own, after an atexit function and with output still in the buffer.
import atexit
import sys

import torch
from torch import nn

from utils import blobs, checksum

atexit.register(print, "atexit: first registered")
atexit.register(lambda: print("atexit: last registered", file=sys.stderr))
torch.manual_seed(23)
x, y = blobs(64)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if step == 6:
        print("weights", checksum(model))
        sys.stdout.write("enough")
        sys.exit(3)
