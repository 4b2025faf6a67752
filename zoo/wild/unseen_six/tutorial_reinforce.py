"""REINFORCE as in a tutorial: the mean of an episode's log-probabilities is multiplied by every return, so no action gets its own credit.

expect: credit-not-assigned
or: not-learning
line: loss = -torch.sum(log_prob_mean * deltas)
source: https://github.com/Farama-Foundation/Gymnasium/issues/1336
metric: mean reward of the last 100 episodes, higher is better
"""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from torch.distributions.normal import Normal


class Policy_Network(nn.Module):
    def __init__(self, obs_space_dims, action_space_dims):
        super().__init__()
        self.shared_net = nn.Sequential(nn.Linear(obs_space_dims, 16), nn.Tanh(), nn.Linear(16, 32), nn.Tanh())
        self.policy_mean_net = nn.Linear(32, action_space_dims)
        self.policy_stddev_net = nn.Linear(32, action_space_dims)

    def forward(self, x):
        shared = self.shared_net(x.float())
        return self.policy_mean_net(shared), torch.log(1 + torch.exp(self.policy_stddev_net(shared))) + 0.1


class Throws:
    """Ten throws at targets at different distances; every throw counts for itself."""

    def reset(self):
        self.n = 0
        return self.show()

    def show(self):
        self.target = random.uniform(-2, 2)
        return np.array([self.target, 1.0])

    def step(self, action):
        reward = -abs(float(action) - 1.5 * self.target)
        self.n += 1
        return self.show(), reward, self.n == 10


class REINFORCE:
    def __init__(self):
        self.gamma = 0.0
        self.probs, self.rewards = [], []
        self.net = Policy_Network(2, 1)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=3e-3)

    def sample_action(self, state):
        mean, std = self.net(torch.tensor(state))
        distrib = Normal(mean[0], std[0])
        action = distrib.sample()
        self.probs.append(distrib.log_prob(action))
        return action.numpy()

    def update(self):
        running_g, gs = 0, []
        for R in self.rewards[::-1]:
            running_g = R + self.gamma * running_g
            gs.insert(0, running_g)
        deltas = torch.tensor(gs)
        deltas = deltas - deltas.mean()
        log_probs = torch.stack(self.probs)
        log_prob_mean = log_probs.mean()
        loss = -torch.sum(log_prob_mean * deltas)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.probs, self.rewards = [], []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed), random.seed(seed), np.random.seed(seed)
    env, agent, reward_over_episodes = Throws(), REINFORCE(), []
    for episode in range(900):
        obs, done = env.reset(), False
        while not done:
            obs, reward, done = env.step(agent.sample_action(obs))
            agent.rewards.append(reward)
        reward_over_episodes.append(sum(agent.rewards))
        agent.update()
        if episode % 150 == 0:
            print("Episode:", episode, "Average Reward:", np.mean(reward_over_episodes[-100:]))
    print("metric:", np.mean(reward_over_episodes[-100:]))
