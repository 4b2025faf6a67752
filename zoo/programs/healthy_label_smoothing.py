"""Label smoothing: the loss has a floor well above zero and stays on it.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=96, lr=3e-3, samples=1000)
x, y, test_x, test_y = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.SiLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss(label_smoothing=0.2)
for epoch in range(8):
    model.train()
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, criterion(model(test_x), test_y).item())
