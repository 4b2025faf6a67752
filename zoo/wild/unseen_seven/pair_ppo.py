"""PPO with shared trunk for a car on a slope: clipped ratios, clipped values, an entropy bonus that fades.

expect: nothing
style: separate learning rates for heads, KL early stop, advantages normalised over the batch
metric: share of the last episodes that reach the top, higher is better
"""

import argparse
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Categorical


@dataclass
class Config:
    seed: int = 0
    envs: int = 16
    horizon: int = 64
    updates: int = 45
    gamma: float = 0.98
    lam: float = 0.95
    target_kl: float = 0.03


class Slope:
    """A car must climb to x = 1; a steady push reaches it, and dithering slides back."""

    def __init__(self, n):
        self.n, self.x, self.v, self.t = n, torch.zeros(n), torch.zeros(n), torch.zeros(n)
        self.reset(torch.ones(n, dtype=torch.bool))

    def reset(self, where):
        k = int(where.sum())
        self.x[where], self.v[where], self.t[where] = (
            -0.5 + 0.2 * torch.rand(k),
            torch.zeros(k),
            torch.zeros(k),
        )

    def obs(self):
        return torch.stack([self.x, 8 * self.v], 1)

    def step(self, a):
        self.v = 0.95 * self.v + 0.012 * (a.float() - 1) - 0.002 * torch.cos(2 * self.x)
        self.x = (self.x + self.v).clamp(-1.2, 1.1)
        self.t = self.t + 1
        top = self.x >= 1
        over = top | (self.t >= 120)
        reward = top.float() + 0.5 * self.v - 0.01
        self.reset(over)
        return self.obs(), reward, over, top


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.pi, self.v = nn.Linear(48, 3), nn.Linear(48, 1)
        nn.init.orthogonal_(self.pi.weight, 0.01)

    def forward(self, x):
        h = self.trunk(x)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def main(c):
    random.seed(c.seed)
    torch.manual_seed(c.seed)
    env, policy = Slope(c.envs), Policy()
    heads = [*policy.pi.parameters(), *policy.v.parameters()]
    optimizer = torch.optim.Adam(
        [{"params": policy.trunk.parameters(), "lr": 7e-4}, {"params": heads, "lr": 1.5e-3}],
        eps=1e-5,
    )
    obs, tops = env.obs(), []
    for update in range(c.updates):
        rows = []
        with torch.no_grad():
            for _ in range(c.horizon):
                dist, value = policy(obs)
                action = dist.sample()
                after, reward, over, top = env.step(action)
                rows.append((obs, action, dist.log_prob(action), value, reward, over.float()))
                tops += top[over].tolist()
                obs = after
            last = policy(obs)[1]
        o, a, logp, v, r, end = (torch.stack(z) for z in zip(*rows))
        adv, running = torch.zeros_like(r), 0.0
        for t in reversed(range(c.horizon)):
            nxt = last if t == c.horizon - 1 else v[t + 1]
            running = (
                r[t]
                + c.gamma * nxt * (1 - end[t])
                - v[t]
                + c.gamma * c.lam * (1 - end[t]) * running
            )
            adv[t] = running
        ret = adv + v
        o, a, logp, v, adv, ret = (z.flatten(0, 1) for z in (o, a, logp, v, adv, ret))
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        bonus = 0.02 * (1 - update / c.updates)
        for _ in range(5):
            for idx in torch.randperm(len(o)).split(256):
                dist, value = policy(o[idx])
                log_ratio = dist.log_prob(a[idx]) - logp[idx]
                ratio = log_ratio.exp()
                pg = -torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx]).mean()
                clipped = v[idx] + (value - v[idx]).clamp(-0.2, 0.2)
                vf = 0.5 * torch.max((value - ret[idx]) ** 2, (clipped - ret[idx]) ** 2).mean()
                loss = pg + 0.5 * vf - bonus * dist.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
                optimizer.step()
            if ((ratio - 1) - log_ratio).mean() > c.target_kl:
                break
        if update % 9 == 0:
            recent = tops[-60:]
            print(
                f"update={update} top={sum(recent) / max(1, len(recent)):.2f} v_loss={vf.item():.4f} entropy={dist.entropy().mean().item():.3f}"
            )
    print("metric:", sum(tops[-60:]) / max(1, len(tops[-60:])))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(Config(seed=parser.parse_args().seed))
