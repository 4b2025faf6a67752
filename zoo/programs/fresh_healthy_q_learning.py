"""Q-learning with a target network that is copied now and then: the loss goes up and down.

expect: nothing
half: fresh
net: mlp
"""

import copy

import torch
import torch.nn.functional as F
from common import arguments
from torch import nn

args = arguments(width=48, lr=2e-3, steps=300)
q = nn.Sequential(nn.Linear(4, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(), nn.Linear(args.width, 3))
target = copy.deepcopy(q)
for p in target.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(q.parameters(), lr=args.lr)
for step in range(args.steps):
    state = torch.randn(64, 4)
    with torch.no_grad():
        greedy = q(state).argmax(1)
    action = torch.where(torch.rand(64) < 0.3, torch.randint(3, (64,)), greedy)
    reward = state[:, 0] * (action == 1) - state[:, 1] * (action == 2)
    after = 0.9 * state + 0.3 * torch.randn(64, 4)
    with torch.no_grad():
        best = target(after).amax(1)
    value = q(state).gather(1, action[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(value, reward + 0.9 * best)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(q.parameters(), 1.0)
    opt.step()
    if step % 40 == 0:
        target.load_state_dict(q.state_dict())
        print(step, loss.item())
