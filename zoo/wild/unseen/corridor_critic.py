"""Value network of a corridor robot trained on Monte Carlo returns; values were [B], returns [B, 1], their difference a [B, B] table, and the critic learned the mean return for every state.

expect: loss-broadcast
line: (returns - values)
source: https://github.com/RLinf/RLinf/issues/1568
metric: explained variance of the true state values, higher is better
"""
import argparse
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    seed: int = 0
    gamma: float = 0.95
    cells: int = 21
    envs: int = 64
    horizon: int = 40
    updates: int = 250
    minibatch: int = 256
    lr: float = 3e-3


class Corridor:
    """Walk left or right at random; +1 at the right end, -1 at the left end."""

    def __init__(self, n, cells):
        self.n, self.cells = n, cells
        self.pos = torch.randint(1, cells - 1, (n,))

    def step(self):
        self.pos = self.pos + torch.randint(0, 2, (self.n,)) * 2 - 1
        reward = (self.pos == self.cells - 1).float() - (self.pos == 0).float()
        done = (self.pos == 0) | (self.pos == self.cells - 1)
        fresh = torch.randint(1, self.cells - 1, (self.n,))
        self.pos = torch.where(done, fresh, self.pos)
        return reward, done.float()


class Critic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.value_head = nn.Linear(hidden, 1)

    def forward(self, obs):
        return self.value_head(self.net(obs)).squeeze(-1)


def obs_of(pos, cells):
    return (pos.float() / (cells - 1) * 2 - 1).unsqueeze(-1)


def collect(env, cfg):
    obs, rewards, dones = [], [], []
    for _ in range(cfg.horizon):
        obs.append(obs_of(env.pos, cfg.cells))
        r, d = env.step()
        rewards.append(r.unsqueeze(-1))
        dones.append(d.unsqueeze(-1))
    ret, running = [], torch.zeros(env.n, 1)
    for r, d in zip(reversed(rewards), reversed(dones)):
        running = r + cfg.gamma * (1 - d) * running
        ret.append(running)
    keep = cfg.horizon // 2  # the tail is cut off too early to be a return
    return torch.cat(obs[:keep]), torch.cat(ret[::-1][:keep])


def critic_loss(values, returns):
    return 0.5 * (returns - values).pow(2).mean()


def true_values(cfg):
    v = torch.zeros(cfg.cells, dtype=torch.float64)
    for _ in range(2000):
        nxt = torch.zeros_like(v)
        for s in range(1, cfg.cells - 1):
            for t in (s - 1, s + 1):
                end = t in (0, cfg.cells - 1)
                r = 1.0 if t == cfg.cells - 1 else (-1.0 if t == 0 else 0.0)
                nxt[s] += 0.5 * (r + (0 if end else cfg.gamma * v[t]))
        if (nxt - v).abs().max() < 1e-6:
            break
        v = nxt
    return v[1:-1].float()


def main(cfg):
    torch.manual_seed(cfg.seed)
    env, critic = Corridor(cfg.envs, cfg.cells), Critic()
    optimizer = torch.optim.Adam(critic.parameters(), lr=cfg.lr)
    update = 0
    while update < cfg.updates:
        obs, returns = collect(env, cfg)
        for idx in torch.randperm(len(obs)).split(cfg.minibatch):
            values = critic(obs[idx])
            loss = critic_loss(values, returns[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            update += 1
        if update % 50 == 0:
            print("update", update, "critic loss", round(loss.item(), 4))
    target = true_values(cfg)
    with torch.no_grad():
        estimate = critic(obs_of(torch.arange(1, cfg.cells - 1), cfg.cells))
    ev = 1 - (target - estimate).var() / target.var()
    print(f"metric: {ev.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(Config(seed=parser.parse_args().seed))
