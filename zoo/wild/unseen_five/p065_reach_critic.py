"""A critic joins state and action through the .data of two layers' weights: those two layers never get a gradient.

expect: no-gradient
line: s11 = torch.mm(s1, self.layer_2_s.weight.data.t())
source: https://github.com/reiniscimurs/DRL-robot-navigation/issues/12
metric: mean return of the learnt policy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self, state_dim, action_dim):
        super(Actor, self).__init__()
        self.layer_1 = nn.Linear(state_dim, 32)
        self.layer_2 = nn.Linear(32, action_dim)
        self.tanh = nn.Tanh()

    def forward(self, s):
        return self.tanh(self.layer_2(F.relu(self.layer_1(s))))


class Critic(nn.Module):
    def __init__(self, state_dim, action_dim):
        super(Critic, self).__init__()
        self.layer_1 = nn.Linear(state_dim, 24)
        self.layer_2_s = nn.Linear(24, 24)
        self.layer_2_a = nn.Linear(action_dim, 24)
        self.layer_3 = nn.Linear(24, 1)

    def forward(self, s, a):
        s1 = F.relu(self.layer_1(s))
        s11 = torch.mm(s1, self.layer_2_s.weight.data.t())
        s12 = torch.mm(a, self.layer_2_a.weight.data.t())
        s1 = F.relu(s11 + s12 + self.layer_2_a.bias.data)
        return self.layer_3(s1)


class Arena:
    """One step: the robot sees its target and is paid for moving there."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def observe(self, n):
        self.target = torch.tensor(self.rng.uniform(-0.9, 0.9, (n, 5)), dtype=torch.float32)
        return self.target

    def reward(self, action):
        return 1 - ((action - self.target) ** 2).sum(1, keepdim=True)


def main(seed, steps):
    torch.manual_seed(seed)
    env, actor, critic = Arena(seed), Actor(5, 5), Critic(5, 5)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=5e-3)
    states, actions, rewards = [], [], []
    for step in range(steps):
        s = env.observe(16)
        with torch.no_grad():
            a = (actor(s) + 0.4 * torch.randn(16, 5)).clamp(-1, 1)
        states.append(s), actions.append(a), rewards.append(env.reward(a))
        pick = torch.randint(0, len(states), (4,))
        bs, ba, br = (torch.cat([m[i] for i in pick]) for m in (states, actions, rewards))
        critic_loss = F.mse_loss(critic(bs, ba), br)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
        actor_loss = -critic(bs, actor(bs)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        if step % 200 == 0:
            print("step", step, "critic", critic_loss.item(), "reward", br.mean().item())
    with torch.no_grad():
        return env.reward(actor(env.observe(500))).mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    print("metric:", main(args.seed, args.steps))
