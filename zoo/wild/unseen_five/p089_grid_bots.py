"""REINFORCE in a little grid, in the manner of the examples, with a rate of 0.3: the policy is sure of itself at once, and walks into a wall.

expect: learning-rate-too-high
line: optimizer = torch.optim.Adam(policy.parameters(), lr=0.3)
source: https://discuss.pytorch.org/t/help-with-pytorch-policy-gradient-agent-that-learns-actions-resulting-in-consistent-negative-rewards/160728
metric: mean reward of the last episodes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

MOVES = torch.tensor([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_1 = nn.Linear(4, 48)
        self.linear_2 = nn.Linear(48, 5)

    def forward(self, x):
        x = F.relu(self.linear_1(x))
        return F.softmax(self.linear_2(x), dim=-1)


class Grid:
    """Many bots at once, each with a target of its own; 7 x 7 fields."""

    def __init__(self, bots):
        self.bot, self.target = torch.randint(0, 7, (2, bots, 2))

    def state(self):
        return torch.cat([self.bot, self.target], 1) / 3.0 - 1

    def step(self, action):
        before = (self.bot - self.target).abs().sum(1)
        want = self.bot + MOVES[action]
        inside = ((want >= 0) & (want < 7)).all(1)
        self.bot = torch.where(inside[:, None], want, self.bot)
        after = (self.bot - self.target).abs().sum(1)
        reward = (before - after).float() - 0.5 * (~inside) + 0.5 * (after == 0)
        return reward


def main(seed):
    torch.manual_seed(seed)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.3)
    history = []
    for episode in range(300):
        env = Grid(16)
        log_probs, rewards = [], []
        for _ in range(10):
            m = Categorical(policy(env.state()))
            action = m.sample()
            log_probs.append(m.log_prob(action))
            rewards.append(env.step(action))
        R, returns = torch.zeros(16), []
        for r in rewards[::-1]:
            R = r + 0.8 * R
            returns.insert(0, R)
        returns = torch.stack(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(log_probs) * returns).sum(0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(torch.stack(rewards).sum(0).mean().item())
        if episode % 50 == 0:
            print("episode", episode, "reward", history[-1])
    print("metric:", sum(history[-30:]) / 30)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
