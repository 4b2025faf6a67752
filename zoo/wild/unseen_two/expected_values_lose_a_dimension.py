"""DQN: Q(s, a) from gather is (batch, 1), the target r + gamma max Q is (batch,), and the loss broadcasts the two.

expect: loss-broadcast
line: loss = F.smooth_l1_loss(q_values, expected)
source: https://github.com/kengz/SLM-Lab/pull/372
metric: mean reward of the greedy policy, higher is better
"""

import argparse
import random
import warnings
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


class Corridor:
    """A walk on 0..9 that starts anywhere: +1 at the right end, a small toll per step, the left end costs 1."""

    def reset(self):
        self.at, self.t = random.randint(2, 7), 0
        return self.state()

    def state(self):
        return np.eye(10, dtype=np.float32)[self.at]

    def step(self, action):
        self.at += 1 if action == 1 else -1
        self.t += 1
        reward = {0: -1.0, 9: 1.0}.get(self.at, -0.02)
        return self.state(), reward, self.at in (0, 9) or self.t >= 30


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 32), nn.Linear(32, 2)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


class Agent:
    def __init__(self, gamma=0.95):
        self.policy_net, self.target_net = DQN(), DQN()
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.optimizer = torch.optim.Adam(self.policy_net.parameters(), lr=2e-3)
        self.memory, self.gamma = deque(maxlen=3000), gamma

    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.policy_net(torch.from_numpy(state)).argmax())

    def learn(self, batch_size=32):
        if len(self.memory) < 200:
            return None
        s, a, r, s2, done = zip(*random.sample(self.memory, batch_size))
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r, done = torch.tensor(a), torch.tensor(r), torch.tensor(done, dtype=torch.float32)
        q_values = self.policy_net(s).gather(1, a.unsqueeze(1))
        with torch.no_grad():
            expected = r + self.gamma * self.target_net(s2).max(1)[0] * (1 - done)
        loss = F.smooth_l1_loss(q_values, expected)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
    env, agent, steps = Corridor(), Agent(), 0
    for episode in range(200):
        state, done, total = env.reset(), False, 0.0
        while not done:
            action = agent.act(state, eps=max(0.1, 1 - episode / 100))
            nxt, reward, done = env.step(action)
            agent.memory.append((state, action, reward, nxt, done))
            agent.learn()
            state, total, steps = nxt, total + reward, steps + 1
            if steps % 50 == 0:
                agent.target_net.load_state_dict(agent.policy_net.state_dict())
        if episode % 25 == 0:
            print(f"episode {episode} reward {total:.2f}")
    rewards = []
    for _ in range(100):
        state, done, total = env.reset(), False, 0.0
        while not done:
            state, reward, done = env.step(agent.act(state, eps=0.0))
            total += reward
        rewards.append(total)
    print("metric:", float(np.mean(rewards)))


main()
