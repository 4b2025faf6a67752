# A progress bar on the standard error, and messages through it.
import torch
from torch import nn
from tqdm import tqdm

from utils import blobs, checksum

torch.manual_seed(20)
x, y = blobs()
model = nn.Sequential(nn.Linear(8, 16), nn.PReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adamax(model.parameters(), lr=0.02)
form = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{postfix}"
for epoch in range(2):
    bar = tqdm(
        list(zip(x.split(32), y.split(32))),
        desc=f"epoch {epoch}",
        bar_format=form,
        mininterval=0,
        miniters=1,
        ncols=60,
    )
    for batch, target in bar:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.4f}")
    tqdm.write(f"epoch {epoch} done: {loss.item():.6f}")
print("weights", checksum(model))
