# An optimizer a parameter, stepped while the backward runs, to save the memory of gradients.
import torch
from torch import nn

from utils import blobs, checksum

torch.manual_seed(26)
x, y = blobs(128)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizers = {p: torch.optim.AdamW([p], lr=0.01, foreach=False) for p in model.parameters()}


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step)

for batch, target in zip(x.split(16), y.split(16)):
    loss = nn.functional.cross_entropy(model(batch), target)
    loss.backward()
    print(f"{loss.item():.6f}", all(p.grad is None for p in model.parameters()))
print("weights", checksum(model))
