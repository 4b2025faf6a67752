"""The advantages have shape (N, 1), the ratios (N,): their product is an N by N matrix, whose mean says nothing of any action.

expect: loss-broadcast
line: surr1 = ratio * advantages
source: https://github.com/RITCHIEHuang/DeepRL_Algorithms/issues/13
metric: mean reward per step, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Shuttles:
    """Many carts on a line, each with its own station; the pay is the nearer the better."""

    def __init__(self, count):
        self.count = count
        self.reset()

    def reset(self):
        self.pos = torch.rand(self.count) * 2 - 1
        self.goal = torch.rand(self.count) * 2 - 1
        return self.state()

    def state(self):
        return torch.stack([self.pos, self.goal], dim=1)

    def step(self, action):
        self.pos = (self.pos + 0.15 * (action - 1).float() + 0.02 * torch.randn(self.count)).clamp(-1.2, 1.2)
        return self.state(), -(self.pos - self.goal).abs()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))


def estimate_advantages(rewards, values, last_value, gamma=0.9, tau=0.9):
    advantages, running, following = torch.zeros_like(rewards), 0.0, last_value
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * following - values[t]
        running = delta + gamma * tau * running
        advantages[t], following = running, values[t]
    returns = advantages + values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return advantages.reshape(-1, 1), returns.reshape(-1, 1)


def ppo_step(net, optimizer, states, actions, old_log_probs, advantages, returns, clip=0.2):
    log_probs = Categorical(logits=net.actor(states)).log_prob(actions)
    ratio = torch.exp(log_probs - old_log_probs)
    surr1 = ratio * advantages
    surr2 = ratio.clamp(1 - clip, 1 + clip) * advantages
    policy_loss = -torch.min(surr1, surr2).mean()
    value_loss = (net.critic(states) - returns).pow(2).mean()
    loss = policy_loss + 0.5 * value_loss
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env, net = Shuttles(32), ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for iteration in range(args.iterations):
        state, log = env.reset(), []
        with torch.no_grad():
            for _ in range(16):
                dist = Categorical(logits=net.actor(state))
                action = dist.sample()
                value = net.critic(state).squeeze(1)
                following, reward = env.step(action)
                log.append((state, action, dist.log_prob(action), reward, value))
                state = following
            states, actions, log_probs, rewards, values = (torch.stack(c) for c in zip(*log))
            advantages, returns = estimate_advantages(rewards, values, net.critic(state).squeeze(1))
        states, actions, log_probs = states.reshape(-1, 2), actions.reshape(-1), log_probs.reshape(-1)
        for _ in range(3):
            for pick in torch.randperm(len(states)).split(128):
                ppo_step(net, optimizer, states[pick], actions[pick], log_probs[pick], advantages[pick], returns[pick])
        if iteration % 10 == 0:
            print("iteration", iteration, "reward", rewards.mean().item())

    with torch.no_grad():
        pay, state = 0.0, Shuttles.reset(env)
        for _ in range(30):
            state, reward = env.step(Categorical(logits=net.actor(state)).sample())
            pay += reward.mean().item() / 30
    print("metric:", pay)


if __name__ == "__main__":
    main()
