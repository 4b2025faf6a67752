"""PPO that updates after some episodes: the discounted reward runs on from one episode into the one before it.

expect: return-crosses-episodes
or: missing-terminal-mask
line: discounted_reward = reward + (self.gamma * discounted_reward)
source: https://github.com/nikhilbarhate99/PPO-PyTorch/issues/8
metric: mean length of the last 60 episodes, higher is better
"""

import argparse
import math
import random

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Pole:
    """A pole on a cart, in one dimension: falls over beyond 0.3 rad, at most 120 steps."""

    def reset(self):
        self.angle, self.rate, self.t = random.uniform(-0.05, 0.05), random.uniform(-0.05, 0.05), 0
        return [self.angle, self.rate]

    def step(self, action):
        self.rate += 0.05 * (9.8 * math.sin(self.angle) + (3.5 if action else -3.5)) + random.gauss(
            0, 0.02
        )
        self.angle += 0.05 * self.rate
        self.t += 1
        return [self.angle, self.rate], 1.0, abs(self.angle) > 0.3 or self.t >= 120


class Memory:
    def __init__(self):
        self.actions, self.states, self.logprobs, self.rewards, self.is_terminals = (
            [],
            [],
            [],
            [],
            [],
        )

    def clear_memory(self):
        for part in (self.actions, self.states, self.logprobs, self.rewards, self.is_terminals):
            del part[:]


class ActorCritic(nn.Module):
    def __init__(self, state_dim, action_dim, n_latent_var):
        super().__init__()
        self.action_layer = nn.Sequential(
            nn.Linear(state_dim, n_latent_var),
            nn.Tanh(),
            nn.Linear(n_latent_var, action_dim),
            nn.Softmax(dim=-1),
        )
        self.value_layer = nn.Sequential(
            nn.Linear(state_dim, n_latent_var), nn.Tanh(), nn.Linear(n_latent_var, 1)
        )

    def act(self, state, memory):
        state = torch.tensor(state) * 5
        with torch.no_grad():
            dist = Categorical(self.action_layer(state))
        action = dist.sample()
        memory.states.append(state)
        memory.actions.append(action)
        memory.logprobs.append(dist.log_prob(action))
        return action.item()

    def evaluate(self, state, action):
        dist = Categorical(self.action_layer(state))
        return dist.log_prob(action), self.value_layer(state).squeeze(-1), dist.entropy()


class PPO:
    def __init__(self, gamma=0.98, K_epochs=4, eps_clip=0.2):
        self.gamma, self.K_epochs, self.eps_clip = gamma, K_epochs, eps_clip
        self.policy = ActorCritic(2, 2, 32)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-3)
        self.MseLoss = nn.MSELoss()

    def update(self, memory):
        rewards = []
        discounted_reward = 0
        for reward, is_terminal in zip(reversed(memory.rewards), reversed(memory.is_terminals)):
            discounted_reward = reward + (self.gamma * discounted_reward)
            rewards.insert(0, discounted_reward)
        rewards = torch.tensor(rewards)
        rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-5)
        old_states, old_actions = torch.stack(memory.states), torch.stack(memory.actions)
        old_logprobs = torch.stack(memory.logprobs)
        for _ in range(self.K_epochs):
            logprobs, state_values, dist_entropy = self.policy.evaluate(old_states, old_actions)
            ratios = torch.exp(logprobs - old_logprobs)
            advantages = rewards - state_values.detach()
            surr1 = ratios * advantages
            surr2 = torch.clamp(ratios, 1 - self.eps_clip, 1 + self.eps_clip) * advantages
            loss = (
                -torch.min(surr1, surr2)
                + 0.5 * self.MseLoss(state_values, rewards)
                - 0.01 * dist_entropy
            )
            self.optimizer.zero_grad()
            loss.mean().backward()
            self.optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--update-timestep", type=int, default=500)
    parser.add_argument("--max-timesteps", type=int, default=20000)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    env, memory, ppo, timestep, lengths = Pole(), Memory(), PPO(), 0, []
    while timestep < args.max_timesteps:
        state, done, t = env.reset(), False, 0
        while not done:
            timestep, t = timestep + 1, t + 1
            state, reward, done = env.step(ppo.policy.act(state, memory))
            memory.rewards.append(reward)
            memory.is_terminals.append(done)
            if timestep % args.update_timestep == 0:
                ppo.update(memory)
                memory.clear_memory()
        lengths.append(t)
        if len(lengths) % 100 == 0:
            print(
                "Episode {} \t avg length: {:.1f}".format(len(lengths), sum(lengths[-100:]) / 100)
            )
    print("metric:", sum(lengths[-60:]) / 60)


if __name__ == "__main__":
    main()
