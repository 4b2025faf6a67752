"""TD3 drives a point mass to the origin: twin critics, delayed actor, target smoothing, Polyak targets.

expect: nothing
style: RL agent class with three networks and their frozen copies; the actor's loss is -Q, the critics' loss rises as returns get better
"""
import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class PointMass:
    """N masses at once: position and velocity, force in [-1, 1], cost of distance."""

    def __init__(self, n, rng):
        self.n, self.rng = n, rng

    def reset(self):
        self.s = np.concatenate([self.rng.uniform(-1, 1, (self.n, 1)), np.zeros((self.n, 1))], 1)
        return self.s.astype(np.float32)

    def step(self, a):
        v = 0.95 * self.s[:, 1:] + 0.1 * a
        x = np.clip(self.s[:, :1] + 0.3 * v, -2, 2)
        self.s = np.concatenate([x, v], 1)
        reward = -(np.abs(x) + 0.05 * a ** 2)[:, 0]
        return self.s.astype(np.float32), reward.astype(np.float32)


def mlp(i, o, out=None):
    layers = [nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, o)]
    return nn.Sequential(*layers, out) if out else nn.Sequential(*layers)


class TD3:
    def __init__(self, obs=2, act=1, gamma=0.95, tau=0.01):
        self.actor = mlp(obs, act, nn.Tanh())
        self.q1, self.q2 = mlp(obs + act, 1), mlp(obs + act, 1)
        self.actor_t, self.q1_t, self.q2_t = (copy.deepcopy(m) for m in (self.actor, self.q1, self.q2))
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optim = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], lr=1e-3)
        self.gamma, self.tau, self.it = gamma, tau, 0

    @torch.no_grad()
    def act(self, s):
        return self.actor(torch.from_numpy(s)).numpy()

    def update(self, s, a, r, s2):
        self.it += 1
        with torch.no_grad():
            noise = (torch.randn_like(a) * 0.2).clamp(-0.5, 0.5)
            a2 = (self.actor_t(s2) + noise).clamp(-1, 1)
            x2 = torch.cat([s2, a2], 1)
            target = r[:, None] + self.gamma * torch.min(self.q1_t(x2), self.q2_t(x2))
        x = torch.cat([s, a], 1)
        critic_loss = F.mse_loss(self.q1(x), target) + F.mse_loss(self.q2(x), target)
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()
        if self.it % 2 == 0:
            actor_loss = -self.q1(torch.cat([s, self.actor(s)], 1)).mean()
            self.actor_optim.zero_grad()
            actor_loss.backward()
            self.actor_optim.step()
            with torch.no_grad():
                for net, tgt in ((self.actor, self.actor_t), (self.q1, self.q1_t), (self.q2, self.q2_t)):
                    for p, pt in zip(net.parameters(), tgt.parameters()):
                        pt.mul_(1 - self.tau).add_(self.tau * p)
        return critic_loss.item()


def evaluate(policy, seed):
    env = PointMass(100, np.random.default_rng(seed))
    s, total = env.reset(), 0.0
    for _ in range(40):
        s, r = env.step(policy(s))
        total += r.mean()
    return total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    env, agent = PointMass(16, rng), TD3()
    buf = [[], [], [], []]
    random_return = evaluate(lambda s: rng.uniform(-1, 1, (len(s), 1)), 99)
    for episode in range(40):
        s = env.reset()
        for t in range(40):
            if episode < 4:
                a = rng.uniform(-1, 1, (16, 1)).astype(np.float32)
            else:
                a = np.clip(agent.act(s) + rng.normal(0, 0.15, (16, 1)), -1, 1).astype(np.float32)
            s2, r = env.step(a)
            for store, item in zip(buf, (s, a, r, s2)):
                store.append(item)
            s = s2
            if episode >= 4:
                i, j = rng.integers(len(buf[0]), size=128), rng.integers(16, size=128)
                batch = [torch.from_numpy(np.stack([store[k][m] for k, m in zip(i, j)])) for store in buf]
                batch[2] = batch[2].reshape(-1)
                closs = agent.update(*batch)
        if episode % 6 == 5:
            print(f"episode {episode + 1}: critic {closs:.4f} return {evaluate(agent.act, 7):.2f}")
    print(f"random {random_return:.2f}")
    print(f"metric: {evaluate(agent.act, 99):.4f}")


if __name__ == "__main__":
    main()
