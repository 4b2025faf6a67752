"""Images were shuffled and labels were not: there is nothing to learn.

expect: not-learning
or: class-collapse
half: second
"""

import torch
from common import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

args = arguments(width=12, lr=1e-3, steps=200, samples=1200)
x, y, _, _ = digits(args.samples, image=True)


class Pairs(Dataset):
    def __len__(self):
        return len(x)

    def __getitem__(self, i):
        return x[i], y[torch.randint(len(y), ())]  # meant to be y[i]


model = nn.Sequential(
    nn.Conv2d(1, args.width, 3), nn.ReLU(), nn.Flatten(), nn.Linear(args.width * 36, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
step = 0
while step < args.steps:
    for a, b in DataLoader(Pairs(), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 40 == 0:
            print(step, loss.item())
