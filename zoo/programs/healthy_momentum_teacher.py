"""A student follows a teacher that is a moving average of itself.

expect: nothing
half: first
"""

import copy

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=2e-3, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)
student = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=args.lr)
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    with torch.no_grad():
        soft = teacher(a + 0.1 * torch.randn_like(a)).softmax(-1)
    logits = student(a)
    loss = nn.functional.cross_entropy(logits, b) + 0.1 * nn.functional.cross_entropy(logits, soft)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), student.parameters()):
            old.lerp_(new, 0.02)
    if step % 40 == 0:
        print(step, loss.item())
