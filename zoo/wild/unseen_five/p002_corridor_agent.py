"""REINFORCE with a moving baseline in a corridor: the loss has no floor, hovers around zero and says nothing about success.

expect: nothing
style: policy gradient by hand, negative losses, batches of one episode each
metric: share of the last episodes that reach the goal, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    """Seven rooms; the agent starts in the middle, the goal is right, a pit is left."""

    def reset(self):
        self.at = 3
        return self.see()

    def see(self):
        x = torch.zeros(7)
        x[self.at] = 1
        return x

    def step(self, action):
        if random.random() < 0.1:
            action = 1 - action
        self.at += 1 if action else -1
        done = self.at in (0, 6)
        return self.see(), {0: -1.0, 6: 1.0}.get(self.at, -0.02), done


def main():
    parser = argparse.ArgumentParser(description="PyTorch REINFORCE example")
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    policy = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    env, baseline, wins = Corridor(), 0.0, []
    for episode in range(350):
        state, done, log_probs, rewards = env.reset(), False, [], []
        while not done and len(rewards) < 40:
            m = Categorical(logits=policy(state))
            action = m.sample()
            log_probs.append(m.log_prob(action))
            state, reward, done = env.step(action.item())
            rewards.append(reward)
        returns, R = [], 0.0
        for r in reversed(rewards):
            R = r + args.gamma * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        baseline = 0.9 * baseline + 0.1 * returns.mean().item()
        loss = -(torch.stack(log_probs) * (returns - baseline)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        wins.append(float(env.at == 6))
        if episode % 50 == 0:
            print("Episode %d\tlength %d\tloss %.3f" % (episode, len(rewards), loss.item()))
    print("metric:", sum(wins[-100:]) / 100)


if __name__ == "__main__":
    main()
