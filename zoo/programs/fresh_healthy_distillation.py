"""A student learns from a trained teacher by the divergence of softened outputs.

expect: nothing
half: fresh
net: mlp
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=24, lr=3e-3, samples=900)
x, y, _, _ = digits(args.samples)
teacher = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for epoch in range(3):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        F.cross_entropy(teacher(a), b).backward()
        opt.step()
teacher.eval().requires_grad_(False)
student = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
opt = torch.optim.Adam(student.parameters(), lr=args.lr)
T = 3.0
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        with torch.no_grad():
            wanted = teacher(a)
        given = student(a)
        soft = F.kl_div(F.log_softmax(given / T, 1), F.softmax(wanted / T, 1), reduction="batchmean")
        loss = T * T * soft + 0.3 * F.cross_entropy(given, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
