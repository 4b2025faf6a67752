"""REINFORCE on a small corridor, as in the PyTorch examples: the loss is noisy, of both signs and means nothing.

expect: nothing
style: policy gradient with normalised returns, one update per episode (looks like a negative or stuck loss)
"""

import argparse
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--gamma", type=float, default=0.97)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--episodes", type=int, default=300)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.RandomState(args.seed)


class Corridor:
    """Walk to the flag at one of the two ends; which one is told by the third observation."""

    def reset(self):
        self.pos, self.t = 0, 0
        self.goal = rng.choice([-4, 4])
        return self.obs()

    def obs(self):
        return np.array([self.pos / 4.0, self.t / 20.0, np.sign(self.goal)], dtype=np.float32)

    def step(self, action):
        self.pos += (-1, 0, 1)[action]
        self.pos = int(np.clip(self.pos, -4, 4))
        self.t += 1
        done = self.pos == self.goal or self.t >= 20
        return self.obs(), (1.0 if self.pos == self.goal else -0.05), done


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(3, 32)
        self.affine2 = nn.Linear(32, 3)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(torch.tanh(self.affine1(x))), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    probs = policy(torch.from_numpy(state).float().unsqueeze(0))
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R, returns = 0, []
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    if len(returns) > 1:
        returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_loss = [-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


def main():
    env, history = Corridor(), []
    for i_episode in range(args.episodes):
        state, ep_reward = env.reset(), 0
        for t in count(1):
            state, reward, done = env.step(select_action(state))
            policy.rewards.append(reward)
            ep_reward += reward
            if done:
                break
        history.append(ep_reward)
        finish_episode()
        if i_episode % 50 == 0:
            print("Episode {}\tLast reward: {:.2f}\tAverage: {:.2f}".format(i_episode, ep_reward, np.mean(history[-50:])))
    print("metric: %.3f" % np.mean(history[-50:]))


if __name__ == "__main__":
    main()
