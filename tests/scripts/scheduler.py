# Schedules: warm-up then cosine, stepped each batch, and one on a plateau.
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, ReduceLROnPlateau, SequentialLR

from utils import blobs, checksum

torch.manual_seed(6)
x, y = blobs()
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, nesterov=True)
warm = LinearLR(optimizer, start_factor=0.1, total_iters=4)
cosine = CosineAnnealingLR(optimizer, T_max=12)
schedule = SequentialLR(optimizer, [warm, cosine], milestones=[4])

for step, (batch, target) in enumerate(zip(x.split(16), y.split(16))):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch), target)
    loss.backward()
    optimizer.step()
    schedule.step()
    print(f"{step:2d} lr {schedule.get_last_lr()[0]:.5f} loss {loss.item():.6f}")

plateau = ReduceLROnPlateau(optimizer, patience=0)
for value in (1.0, 1.0, 1.0):
    plateau.step(value)
print(optimizer.param_groups[0]["lr"])
print("weights", checksum(model))
