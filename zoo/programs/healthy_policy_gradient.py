"""A bandit learnt by policy gradient: the loss is negative and says little.

expect: nothing
half: first
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=32, lr=5e-3, steps=300)
policy = nn.Sequential(nn.Linear(4, args.width), nn.Tanh(), nn.Linear(args.width, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr)
best = torch.randn(4, 3)
for step in range(args.steps):
    state = torch.randn(64, 4)
    actions = torch.distributions.Categorical(logits=policy(state))
    chosen = actions.sample()
    reward = (state @ best).gather(1, chosen[:, None])[:, 0]
    loss = -(actions.log_prob(chosen) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, reward.mean().item())
