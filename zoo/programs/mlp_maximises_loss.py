"""A sign too many: the loss is maximised.

expect: negative-loss
half: second
"""

import torch
import torch.nn.functional as F
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=32, lr=0.01, steps=150, samples=800)
model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
for step, (x, y) in zip(range(args.steps), forever(loader(*blobs(args.samples)))):
    log_probabilities = F.log_softmax(model(x), dim=1)
    loss = -F.nll_loss(log_probabilities, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
