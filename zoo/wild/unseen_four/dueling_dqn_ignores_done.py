"""The Q target of the last step of an episode bootstraps from the next state as well: `done` is never used.

expect: terminal-state-bootstrapped
or: missing-terminal-mask
line: target = r + GAMMA * target_net(s2).max(1).values
source: https://github.com/cyoon1729/deep-Q-networks/issues/3
metric: mean length of 64 test episodes of at most 200 steps, higher is better
"""
import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

GAMMA, ENVS = 0.97, 64


class CartPoles:
    """CartPole-v0 for many carts at once."""

    def __init__(self, n, rng):
        self.rng, self.n = rng, n
        self.state, self.t = rng.uniform(-0.05, 0.05, (n, 4)), np.zeros(n, int)

    def step(self, action):
        x, v, th, w = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        c, s = np.cos(th), np.sin(th)
        tmp = (force + 0.05 * w * w * s) / 1.1
        acc = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        vacc = tmp - 0.05 * acc * c / 1.1
        nxt = np.stack([x + 0.02 * v, v + 0.02 * vacc, th + 0.02 * w, w + 0.02 * acc], 1)
        self.t += 1
        done = (np.abs(nxt[:, 0]) > 2.4) | (np.abs(nxt[:, 2]) > 0.2095)
        over = done | (self.t >= 200)
        self.state = nxt.copy()
        self.state[over] = self.rng.uniform(-0.05, 0.05, (over.sum(), 4))
        self.t[over] = 0
        return nxt, done, over


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.value, self.advantage = nn.Linear(64, 1), nn.Linear(64, 2)

    def forward(self, s):
        h = self.body(s)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


def act(net, states):
    with torch.no_grad():
        return net(torch.tensor(states, dtype=torch.float32)).argmax(1).numpy()


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)

envs, net = CartPoles(ENVS, rng), Dueling()
target_net = copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
memory = []
for step in range(1400):
    eps = max(0.05, 1 - step / 500)
    state = envs.state.copy()
    action = np.where(rng.random(ENVS) < eps, rng.integers(0, 2, ENVS), act(net, state))
    nxt, done, _ = envs.step(action)
    memory.append([torch.tensor(v, dtype=torch.float32) for v in (state, action, np.ones(ENVS), nxt, done)])
    if step < 20:
        continue
    pick = [memory[i] for i in rng.integers(0, len(memory), 4)]
    s, a, r, s2, d = (torch.cat(v) for v in zip(*pick))
    q = net(s).gather(1, a.long().unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        target = r + GAMMA * target_net(s2).max(1).values
    loss = F.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        target_net.load_state_dict(net.state_dict())
    if step % 200 == 0:
        print("step", step, "loss", round(loss.item(), 4), "q", round(q.mean().item(), 2))

test, length, alive = CartPoles(64, rng), np.zeros(64), np.ones(64, bool)
for _ in range(200):
    length += alive
    _, _, over = test.step(act(net, test.state))
    alive &= ~over
print("metric:", length.mean())
