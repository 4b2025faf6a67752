"""Soft actor-critic for a reacher on a line: the head for the log of the deviation ends in a ReLU.

expect: output-range
or: dead-units, missing-activation
line: log_std = F.relu(self.log_std_head(x))
source: https://github.com/sweetice/Deep-reinforcement-learning-with-pytorch/issues/36
metric: mean return of the last 40 episodes, higher is better
"""

import argparse
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

parser = argparse.ArgumentParser()
parser.add_argument("--seed", default=0, type=int)
parser.add_argument("--gamma", default=0.9, type=float)
parser.add_argument("--tau", default=0.02, type=float)
parser.add_argument("--alpha", default=0.02, type=float)
parser.add_argument("--episodes", default=220, type=int)
args = parser.parse_args()
random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)


class Reach:
    def reset(self):
        self.pos, self.goal, self.t = np.random.uniform(-1, 1), np.random.uniform(-1, 1), 0
        return np.array([self.pos, self.goal], dtype=np.float32)

    def step(self, a):
        self.pos, self.t = float(np.clip(self.pos + 0.5 * a, -1.5, 1.5)), self.t + 1
        return (
            np.array([self.pos, self.goal], dtype=np.float32),
            -abs(self.pos - self.goal),
            self.t >= 15,
        )


class Actor(nn.Module):
    def __init__(self, state_dim, min_log_std=-5, max_log_std=2):
        super(Actor, self).__init__()
        self.fc1 = nn.Linear(state_dim, 48)
        self.fc2 = nn.Linear(48, 48)
        self.mu_head = nn.Linear(48, 1)
        self.log_std_head = nn.Linear(48, 1)
        self.min_log_std, self.max_log_std = min_log_std, max_log_std

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        mu = self.mu_head(x)
        log_std = F.relu(self.log_std_head(x))
        return mu, torch.clamp(log_std, self.min_log_std, self.max_log_std)

    def evaluate(self, state):
        mu, log_std = self(state)
        z = Normal(mu, log_std.exp()).rsample()
        action = torch.tanh(z)
        log_prob = Normal(mu, log_std.exp()).log_prob(z) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob


class Q(nn.Module):
    def __init__(self, state_dim, action_dim):
        super(Q, self).__init__()
        self.net = nn.Sequential(
            nn.Linear(state_dim + action_dim, 48),
            nn.ReLU(),
            nn.Linear(48, 48),
            nn.ReLU(),
            nn.Linear(48, 1),
        )

    def forward(self, s, a):
        return self.net(torch.cat((s, a), -1))


actor, q1, q2, t1, t2 = Actor(2), Q(2, 1), Q(2, 1), Q(2, 1), Q(2, 1)
t1.load_state_dict(q1.state_dict()), t2.load_state_dict(q2.state_dict())
policy_optimizer = torch.optim.Adam(actor.parameters(), lr=2e-3)
q_optimizer = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=2e-3)
buffer, env, returns = deque(maxlen=20000), Reach(), []
for i in range(args.episodes):
    state, done, total = env.reset(), False, 0.0
    while not done:
        with torch.no_grad():
            action = actor.evaluate(torch.from_numpy(state))[0].item()
        next_state, reward, done = env.step(action)
        buffer.append((state, action, reward, next_state))
        state, total = next_state, total + reward
        if len(buffer) < 200:
            continue
        s, a, r, s2 = zip(*random.sample(buffer, 64))
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r = torch.tensor(a)[:, None], torch.tensor(r, dtype=torch.float)[:, None]
        with torch.no_grad():  # episodes end by the clock only
            a2, logp2 = actor.evaluate(s2)
            y = r + args.gamma * (torch.min(t1(s2, a2), t2(s2, a2)) - args.alpha * logp2)
        q_loss = F.mse_loss(q1(s, a), y) + F.mse_loss(q2(s, a), y)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()
        new, logp = actor.evaluate(s)
        pi_loss = (args.alpha * logp - torch.min(q1(s, new), q2(s, new))).mean()
        policy_optimizer.zero_grad()
        pi_loss.backward()
        policy_optimizer.step()
        with torch.no_grad():
            for net, slow in ((q1, t1), (q2, t2)):
                for p, q in zip(net.parameters(), slow.parameters()):
                    q.mul_(1 - args.tau).add_(args.tau * p)
    returns.append(total)
    if i % 40 == 0:
        print(f"episode {i} return {total:.2f}")
print("metric:", sum(returns[-40:]) / 40)
