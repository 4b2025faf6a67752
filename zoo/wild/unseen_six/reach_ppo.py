"""PPO with a Gaussian policy, generalised advantages and an entropy bonus drives a point to a target in many little worlds at once.

expect: nothing
style: vectorised environment in torch, clipped surrogate, several epochs over each rollout, value clipping
metric: mean distance to the target at the end, lower is better
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Normal

N, T = 32, 20


class Worlds:
    def reset(self):
        self.x, self.goal = torch.rand(N, 2) * 2 - 1, torch.rand(N, 2) * 2 - 1
        return torch.cat([self.x, self.goal], 1)

    def step(self, action):
        self.x = self.x + 0.2 * action.clamp(-1, 1)
        return torch.cat([self.x, self.goal], 1), -(self.x - self.goal).norm(dim=1)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 2))
        self.critic = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 1))
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def dist(self, s):
        return Normal(self.actor(s), self.log_std.exp())


def rollout(agent, env, gamma=0.95, lam=0.9):
    s, rows = env.reset(), []
    with torch.no_grad():
        for _ in range(T):
            dist = agent.dist(s)
            a = dist.sample()
            s2, r = env.step(a)
            rows.append((s, a, dist.log_prob(a).sum(1), r, agent.critic(s).squeeze(1)))
            s = s2
        following, advantage, out = agent.critic(s).squeeze(1), torch.zeros(N), []
        for s, a, lp, r, v in reversed(rows):
            advantage = r + gamma * following - v + gamma * lam * advantage
            out.append((s, a, lp, advantage, advantage + v))
            following = v
    return [torch.cat(x) for x in zip(*out)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    agent, env = Agent(), Worlds()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
    for update in range(args.updates):
        s, a, old, adv, ret = rollout(agent, env)
        for _ in range(4):
            for i in torch.randperm(len(s)).split(160):
                dist = agent.dist(s[i])
                ratio = (dist.log_prob(a[i]).sum(1) - old[i]).exp()
                norm = (adv[i] - adv[i].mean()) / (adv[i].std() + 1e-8)
                surrogate = torch.min(ratio * norm, ratio.clamp(0.8, 1.2) * norm).mean()
                value_loss = (agent.critic(s[i]).squeeze(1) - ret[i]).pow(2).mean()
                loss = -surrogate + 0.5 * value_loss - 0.003 * dist.entropy().sum(1).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if update % 10 == 0:
            print("update", update, "return", ret.mean().item(), "std", agent.log_std.exp().mean().item())
    s, distances = env.reset(), None
    with torch.no_grad():
        for _ in range(T):
            s, r = env.step(agent.actor(s))
    print("metric:", -r.mean().item())


if __name__ == "__main__":
    main()
