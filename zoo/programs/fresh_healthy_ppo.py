"""An actor and a critic: a clipped ratio, an error of values and a bonus for entropy.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments
from torch import nn
from torch.distributions import Categorical

args = arguments(width=32, lr=2e-3, steps=60)


class ActorCritic(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor = nn.Linear(width, 3)
        self.critic = nn.Linear(width, 1)

    def forward(self, state):
        h = self.body(state)
        return Categorical(logits=self.actor(h)), self.critic(h)[:, 0]


model = ActorCritic(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for update in range(args.steps):
    state = torch.randn(128, 4)
    with torch.no_grad():
        policy, value = model(state)
        action = policy.sample()
        before = policy.log_prob(action)
    reward = (action == state[:, :3].argmax(1)).float() + 0.3 * torch.randn(128)
    advantage = reward - value
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    for _ in range(4):
        policy, value = model(state)
        ratio = (policy.log_prob(action) - before).exp()
        gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        loss = -gain + 0.5 * (value - reward).pow(2).mean() - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    if update % 15 == 0:
        print(update, reward.mean().item())
