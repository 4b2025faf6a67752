"""DQN with a prioritised memory on a balancing pole: the target goes on beyond the end of an episode, as if falling cost nothing.

expect: missing-terminal-mask
or: terminal-state-bootstrapped, terminal-bootstrapped
line: expected_Q = rewards + self.gamma * max_next_Q
source: https://github.com/cyoon1729/deep-Q-networks/pull/5
metric: mean length of the last 20 episodes, higher is better
"""

import argparse
import math
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Pole:
    """A pole on a cart that is pushed left or right; one point for every step it stands."""

    def reset(self):
        self.s = np.random.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.s.astype(np.float32)

    def step(self, action):
        x, v, a, w = self.s
        force = 10.0 if action == 1 else -10.0
        temp = (force + 0.05 * w * w * math.sin(a)) / 1.1
        acc_a = (9.8 * math.sin(a) - math.cos(a) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(a) ** 2 / 1.1))
        acc_x = temp - 0.05 * acc_a * math.cos(a) / 1.1
        self.s = np.array([x + 0.04 * v, v + 0.04 * acc_x, a + 0.04 * w, w + 0.04 * acc_a])
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return self.s.astype(np.float32), 1.0, fell, self.t >= 100


class Memory:
    def __init__(self, size):
        self.buffer, self.priority = deque(maxlen=size), deque(maxlen=size)

    def push(self, *transition):
        self.buffer.append(transition)
        self.priority.append(max(self.priority, default=1.0))

    def sample(self, n):
        p = np.array(self.priority) ** 0.4
        idx = np.random.choice(len(self.buffer), n, p=p / p.sum())
        return idx, [torch.as_tensor(np.array(x)) for x in zip(*[self.buffer[i] for i in idx])]

    def update(self, idx, errors):
        for i, e in zip(idx, errors):
            self.priority[i] = float(e) + 1e-3


class Agent:
    def __init__(self, gamma=0.98):
        self.gamma = gamma
        self.model = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
        self.target = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
        self.target.load_state_dict(self.model.state_dict())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.memory = Memory(4000)

    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.model(torch.from_numpy(state)).argmax())

    def update(self, batch_size=48):
        idx, (states, actions, rewards, next_states, dones) = self.memory.sample(batch_size)
        rewards, dones = rewards.float(), dones.float()
        curr_Q = self.model(states).gather(1, actions.view(-1, 1)).squeeze(1)
        with torch.no_grad():
            max_next_Q = self.target(next_states).max(1).values
            expected_Q = rewards + self.gamma * max_next_Q
        errors = (curr_Q - expected_Q).abs().detach()
        loss = F.smooth_l1_loss(curr_Q, expected_Q)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.update(idx, errors)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
    env, agent, lengths, total = Pole(), Agent(), [], 0
    while total < 5000:
        state, done, length = env.reset(), False, 0
        while not done:
            action = agent.act(state, max(0.05, 1 - total / 1500))
            next_state, reward, fell, over = env.step(action)
            agent.memory.push(state, action, reward, next_state, fell)
            state, done, length, total = next_state, fell or over, length + 1, total + 1
            if total > 200 and total % 2 == 0:
                agent.update()
            if total % 200 == 0:
                agent.target.load_state_dict(agent.model.state_dict())
        lengths.append(length)
        if len(lengths) % 25 == 0:
            print("Episode", len(lengths), "length", np.mean(lengths[-25:]))
    print("metric:", np.mean(lengths[-20:]))
