"""REINFORCE with normalised returns on a balancing pole, one episode for each update: the loss means nothing, the episodes grow.

expect: nothing
style: policy gradient, list of log-probabilities, returns standardised per episode
metric: mean length of the last 50 episodes, higher is better
"""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Balance:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.angle, self.speed, self.t = self.rng.uniform(-0.05, 0.05), 0.0, 0
        return np.array([self.angle, self.speed], dtype=np.float32) * 5

    def step(self, action):
        push = 2.0 if action else -2.0
        self.speed += 0.05 * (9.8 * math.sin(self.angle) * 0.5 + push)
        self.angle += 0.05 * self.speed
        self.t += 1
        fell = abs(self.angle) > 0.3
        return np.array([self.angle, self.speed], dtype=np.float32) * 5, 1.0, fell or self.t >= 100


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.affine2 = nn.Linear(2, 32), nn.Linear(32, 2)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.affine1(x))), -1)


def finish_episode(policy, optimizer, gamma=0.97):
    R, returns = 0.0, []
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = torch.stack([-lp * R for lp, R in zip(policy.saved_log_probs, returns)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    policy.saved_log_probs.clear()
    policy.rewards.clear()
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env, policy = Balance(np.random.default_rng(args.seed)), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths = []
    for i_episode in range(140):
        state, done = env.reset(), False
        while not done:
            m = Categorical(policy(torch.from_numpy(state)))
            action = m.sample()
            policy.saved_log_probs.append(m.log_prob(action))
            state, reward, done = env.step(action.item())
            policy.rewards.append(reward)
        lengths.append(len(policy.rewards))
        loss = finish_episode(policy, optimizer)
        if i_episode % 40 == 0:
            print("Episode {}\tLast length: {}\tloss: {:.2f}".format(i_episode, lengths[-1], loss))
    print("metric:", np.mean(lengths[-50:]))
