"""Actor-critic in a lab of agents: the log-probabilities are put together by torch.tensor, a new tensor without history, so only the critic learns.

expect: term-without-gradient
or: no-gradient
line: log_probs = torch.tensor([lp for lp in self.log_probs])
source: https://github.com/kengz/SLM-Lab/pull/133
metric: mean return of the last 50 episodes, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Cards:
    """Twelve cards are shown one after another; keep (1) the good ones, leave (0) the others."""

    def __init__(self, rng):
        self.rng = rng
        self.worth = np.sin(np.arange(8) * 2.3)

    def reset(self):
        self.left = 12
        return self._deal()

    def _deal(self):
        self.card = self.rng.integers(8)
        return np.eye(8, dtype=np.float32)[self.card]

    def step(self, action):
        reward = self.worth[self.card] if action else 0.0
        self.left -= 1
        return self._deal(), reward, self.left == 0


class ActorCritic:
    def __init__(self, gamma=0.9):
        self.gamma = gamma
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)
        self.net = nn.ModuleList([self.body, self.actor, self.critic])
        self.optim = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.clear()

    def clear(self):
        self.states, self.rewards, self.log_probs = [], [], []

    def act(self, state):
        state = torch.from_numpy(state)
        pd = torch.distributions.Categorical(logits=self.actor(self.body(state)))
        action = pd.sample()
        self.states.append(state)
        self.log_probs.append(pd.log_prob(action))
        return action.item()

    def train(self):
        returns, R = [], 0.0
        for r in reversed(self.rewards):
            R = r + self.gamma * R
            returns.insert(0, R)
        returns = torch.tensor(returns, dtype=torch.float32)
        values = self.critic(self.body(torch.stack(self.states))).squeeze(1)
        advantages = returns - values.detach()
        log_probs = torch.tensor([lp for lp in self.log_probs])
        policy_loss = -(log_probs * advantages).mean()
        value_loss = F.mse_loss(values, returns)
        loss = policy_loss + 0.5 * value_loss
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        self.clear()
        return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env, agent, history = Cards(np.random.default_rng(args.seed)), ActorCritic(), []
    for episode in range(600):
        state, done, total = env.reset(), False, 0.0
        while not done:
            state, reward, done = env.step(agent.act(state))
            agent.rewards.append(reward)
            total += reward
        loss = agent.train()
        history.append(total)
        if episode % 100 == 0:
            print("episode", episode, "loss", round(loss, 3), "return", round(np.mean(history[-50:]), 3))
    print("metric:", np.mean(history[-50:]))
