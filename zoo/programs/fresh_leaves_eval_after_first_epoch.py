"""model.train() stands before the loop of epochs, model.eval() inside it.

expect: eval-mode-training
onset: 20-40
site: 2
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=0.005)
x, y, vx, vy = digits(960)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Dropout(0.4), nn.Linear(args.width, 10)
)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
model.train()
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, (model(vx).argmax(1) == vy).float().mean().item())
