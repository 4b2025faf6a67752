"""Double DQN on a small cart-pole written in numpy: replay memory, target network, soft updates.

expect: nothing
style: target net gets no gradient and no optimizer on purpose, epsilon greedy, targets move, loss need not fall
"""
import argparse
import math
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "reward", "next_state", "done"))


class CartPole:
    def __init__(self, rng, limit=200):
        self.rng, self.limit = rng, limit

    def reset(self):
        self.s, self.t = self.rng.uniform(-0.05, 0.05, 4), 0
        return self.s.astype(np.float32)

    def step(self, action):
        x, v, th, w = self.s
        force = 10.0 if action == 1 else -10.0
        temp = (force + 0.05 * w * w * math.sin(th)) / 1.1
        acc = (9.8 * math.sin(th) - math.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        xacc = temp - 0.05 * acc * math.cos(th) / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * xacc, th + 0.02 * w, w + 0.02 * acc])
        self.t += 1
        fallen = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095
        return self.s.astype(np.float32), 1.0, fallen, self.t >= self.limit


class DQN(nn.Module):
    def __init__(self, n_obs=4, n_actions=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, n_actions))

    def forward(self, x):
        return self.net(x)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
random.seed(args.seed)
torch.manual_seed(args.seed)
env = CartPole(np.random.default_rng(args.seed))

BATCH, GAMMA, TAU, LR, FRAMES = 64, 0.98, 0.01, 1e-3, 7500
policy_net, target_net = DQN(), DQN()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=LR, amsgrad=True)
criterion = nn.SmoothL1Loss()
memory = deque(maxlen=10000)


def select_action(state, eps):
    if random.random() < eps:
        return random.randrange(2)
    with torch.no_grad():
        return policy_net(torch.from_numpy(state)[None]).argmax(1).item()


def optimize_model():
    batch = Transition(*zip(*random.sample(memory, BATCH)))
    state, next_state = torch.tensor(np.stack(batch.state)), torch.tensor(np.stack(batch.next_state))
    action = torch.tensor(batch.action)[:, None]
    reward, done = torch.tensor(batch.reward), torch.tensor(batch.done, dtype=torch.float32)
    q = policy_net(state).gather(1, action).squeeze(1)
    with torch.no_grad():
        best = policy_net(next_state).argmax(1, keepdim=True)
        target = reward + GAMMA * (1 - done) * target_net(next_state).gather(1, best).squeeze(1)
    loss = criterion(q, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def evaluate(episodes=5):
    total = 0
    for _ in range(episodes):
        s, over = env.reset(), False
        while not over:
            s, r, done, truncated = env.step(select_action(s, 0.0))
            total += r
            over = done or truncated
    return total / episodes


state, episode_return, returns = env.reset(), 0.0, []
best_return, best_state = -1.0, None
for frame in range(FRAMES):
    eps = 0.05 + 0.95 * math.exp(-frame / 900)
    action = select_action(state, eps)
    nxt, reward, done, truncated = env.step(action)
    memory.append(Transition(state, action, reward, nxt, done))
    state, episode_return = nxt, episode_return + reward
    if done or truncated:
        returns.append(episode_return)
        state, episode_return = env.reset(), 0.0
    if len(memory) >= 500 and frame % 3 == 0:
        loss = optimize_model()
        for t, p in zip(target_net.parameters(), policy_net.parameters()):
            t.data.mul_(1 - TAU).add_(p.data, alpha=TAU)
    if frame >= 3000 and frame % 500 == 0:
        mean = np.mean(returns[-8:])
        print(f"frame {frame} loss {loss:.3f} mean return {mean:.1f}")
        if mean > best_return:
            best_return, best_state = mean, {k: v.clone() for k, v in policy_net.state_dict().items()}
policy_net.load_state_dict(best_state)
print(f"metric: {evaluate(10):.2f}")
