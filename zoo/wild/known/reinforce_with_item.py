"""A policy gradient whose log-probabilities I turned into numbers with .item(): the policy stays as random as it was.

expect: no-gradient
line: rl_loss -= log_prob.item()
source: https://github.com/isayev/ReLeaSE/issues/39
metric: mean reward of the last 50 batches, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Generator(nn.Module):
    """Writes sequences of tokens, one after the other."""

    def __init__(self, n_tokens=8, hidden=24):
        super().__init__()
        self.n_tokens = n_tokens
        self.encoder = nn.Embedding(n_tokens + 1, hidden)
        self.rnn = nn.GRUCell(hidden, hidden)
        self.decoder = nn.Linear(hidden, n_tokens)

    def init_state(self, n):
        return torch.full((n,), self.n_tokens), torch.zeros(n, self.rnn.hidden_size)

    def step(self, token, state):
        state = self.rnn(self.encoder(token), state)
        return Categorical(logits=self.decoder(state)), state


def get_reward(tokens):
    """Share of positions at which the token is larger than the one before."""
    return (tokens[:, 1:] > tokens[:, :-1]).float().mean(1)


def policy_gradient(generator, optimizer, baseline, n_batch=16, length=8):
    optimizer.zero_grad()
    token, state = generator.init_state(n_batch)
    tokens, log_probs = [], []
    for _ in range(length):
        dist, state = generator.step(token, state)
        token = dist.sample()
        tokens.append(token)
        log_probs.append(dist.log_prob(token))
    reward = get_reward(torch.stack(tokens, 1))

    rl_loss = torch.zeros(1, requires_grad=True).sum()
    for b in range(n_batch):
        advantage = (reward[b] - baseline).item()
        log_prob = torch.stack([lp[b] for lp in log_probs]).sum()
        rl_loss -= log_prob.item() * advantage / n_batch
    rl_loss.backward()
    optimizer.step()
    return reward.mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    torch.manual_seed(ap.parse_args().seed)
    generator = Generator()
    optimizer = torch.optim.Adam(generator.parameters(), lr=0.01)
    rewards, baseline = [], 0.4
    for i in range(250):
        rewards.append(policy_gradient(generator, optimizer, baseline))
        baseline = 0.9 * baseline + 0.1 * rewards[-1]
        if i % 50 == 0:
            print("iteration", i, "reward", rewards[-1])
    print("metric:", sum(rewards[-50:]) / 50)


main()
