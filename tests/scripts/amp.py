# Mixed precision with a loss scaler, unscaling before clipping.
import torch
from torch import nn

from utils import blobs, checksum

torch.manual_seed(8)
x, y = blobs()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120, growth_interval=5)

for step, (batch, target) in enumerate(zip(x.split(16), y.split(16))):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(batch), target)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(f"{step:2d} scale {scaler.get_scale():g} loss {loss.item():.6f}")
print("weights", checksum(model))
