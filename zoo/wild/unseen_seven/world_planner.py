"""Reinforcement by planning: a small ensemble learns the dynamics of a pendulum, and the best of many imagined plans is taken.

expect: nothing
style: data set that grows between fits, input and target scaled by running statistics, no policy network, bootstrapped members
metric: mean reward of the last episode, higher is better
"""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn


class Pendulum:
    def reset(self):
        self.s = np.array([math.pi + np.random.uniform(-0.3, 0.3), 0.0])
        return self.obs()

    def obs(self):
        return np.array([math.cos(self.s[0]), math.sin(self.s[0]), self.s[1] / 4], dtype=np.float32)

    def step(self, a):
        th, om = self.s
        om = np.clip(om + 0.1 * (7 * math.sin(th) + 9 * float(np.clip(a, -1, 1))), -8, 8)
        self.s = np.array([th + 0.1 * om, om])
        return self.obs()


def reward(obs):
    return obs[..., 0] - 0.05 * obs[..., 2] ** 2


class Dynamics(nn.Module):
    """Says how the observation changes."""

    def __init__(self, members=3, width=64):
        super().__init__()
        self.w1, self.b1 = (
            nn.Parameter(torch.randn(members, 4, width) / 2),
            nn.Parameter(torch.zeros(members, 1, width)),
        )
        self.w2, self.b2 = (
            nn.Parameter(torch.randn(members, width, width) / 8),
            nn.Parameter(torch.zeros(members, 1, width)),
        )
        self.w3, self.b3 = (
            nn.Parameter(torch.randn(members, width, 3) / 8),
            nn.Parameter(torch.zeros(members, 1, 3)),
        )
        self.register_buffer("mean", torch.zeros(3)), self.register_buffer("std", torch.ones(3))

    def forward(self, x):
        h = torch.tanh(x @ self.w1 + self.b1)
        h = torch.tanh(h @ self.w2 + self.b2)
        return h @ self.w3 + self.b3


@torch.no_grad()
def plan(model, obs, horizon=12, candidates=120):
    actions = (torch.randn(candidates, horizon // 3) * 0.8).repeat_interleave(3, 1).clamp(-1, 1)
    s = torch.tensor(obs).expand(3, candidates, 3)
    total = torch.zeros(3, candidates)
    for t in range(horizon):
        a = actions[:, t].expand(3, candidates).unsqueeze(-1)
        s = s + model(torch.cat([s, a], -1)) * model.std + model.mean
        total += reward(s)
    return float(actions[total.mean(0).argmax(), 0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=5)
    args = parser.parse_args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    env, model, rows = Pendulum(), Dynamics(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for episode in range(args.episodes + 2):
        obs, score = env.reset(), []
        for _ in range(100):
            a = np.random.uniform(-1, 1) if episode < 2 else plan(model, obs)
            after = env.step(a)
            rows.append(np.r_[obs, a, after - obs])
            obs = after
            score.append(float(reward(after)))
        data = torch.tensor(np.stack(rows), dtype=torch.float)
        model.mean, model.std = data[:, 4:].mean(0), data[:, 4:].std(0)
        for _ in range(300):
            batch = data[torch.randint(len(data), (3, 64))]
            loss = ((model(batch[..., :4]) - (batch[..., 4:] - model.mean) / model.std) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"episode {episode} reward {np.mean(score):.3f} model loss {loss.item():.5f}")
    print("metric:", float(np.mean(score)))


if __name__ == "__main__":
    main()
