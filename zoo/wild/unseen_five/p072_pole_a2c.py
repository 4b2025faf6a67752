"""Advantage actor-critic with a shared body balances a pole that is simulated in a few lines.

expect: nothing
style: n-step returns, entropy bonus, value and policy loss summed, eight environments at once
metric: mean length of the last episodes, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Poles:
    def __init__(self, n, limit=200):
        self.n, self.limit = n, limit
        self.s = self.fresh(n)
        self.t = torch.zeros(n)

    def fresh(self, n):
        return 0.1 * torch.rand(n, 4) - 0.05

    def step(self, action):
        x, v, th, w = self.s.T
        force = 20.0 * action.float() - 10.0
        temp = (force + 0.05 * w**2 * th.sin()) / 1.1
        acc = (9.8 * th.sin() - th.cos() * temp) / (0.5 * (4 / 3 - 0.1 * th.cos() ** 2 / 1.1))
        self.s = torch.stack([x + 0.02 * v, v + 0.02 * (temp - 0.05 * acc * th.cos() / 1.1), th + 0.02 * w, w + 0.02 * acc], 1)
        self.t += 1
        fell = (self.s[:, 0].abs() > 2.4) | (self.s[:, 2].abs() > 12 * math.pi / 180)
        done = fell | (self.t >= self.limit)
        lengths = self.t[done].tolist()
        self.s = torch.where(done[:, None], self.fresh(self.n), self.s)
        self.t = torch.where(done, 0.0, self.t)
        return torch.where(fell, 0.0, 1.0), done, lengths


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, s):
        h = self.body(s * torch.tensor([1.0, 1.0, 5.0, 1.0]))
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--updates", type=int, default=500)
args = parser.parse_args()
torch.manual_seed(args.seed)
env, net = Poles(16), ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
lengths = []
for update in range(args.updates):
    logp, values, rewards, masks, entropy = [], [], [], [], 0
    for _ in range(10):
        pi, v = net(env.s)
        a = pi.sample()
        r, done, finished = env.step(a)
        logp.append(pi.log_prob(a)), values.append(v), rewards.append(r), masks.append(1 - done.float())
        entropy = entropy + pi.entropy().mean() / 10
        lengths += finished
    with torch.no_grad():
        R = net(env.s)[1]
    returns = []
    for r, m in zip(reversed(rewards), reversed(masks)):
        R = r + 0.97 * m * R
        returns.insert(0, R)
    returns, values, logp = torch.stack(returns), torch.stack(values), torch.stack(logp)
    advantage = returns - values.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    loss = -(logp * advantage).mean() + 0.05 * (returns - values).pow(2).mean() - 0.005 * entropy
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    if update % 100 == 0:
        print("update", update, "mean length", sum(lengths[-30:]) / max(1, len(lengths[-30:])))
print("metric:", sum(lengths[-30:]) / 30)
