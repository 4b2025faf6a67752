"""PPO with clipping, GAE and several passes over every rollout, on a pole that has to be balanced.

expect: nothing
style: actor-critic in one file; the same rollout is used four times in a row, the surrogate loss stays around zero, and the learning rate is annealed to zero at the end
"""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn
from torch.distributions.categorical import Categorical


class Poles:
    """Vector environment: angle and angular speed, two torques, +1 while upright."""

    def __init__(self, n, seed):
        self.n, self.rng = n, np.random.default_rng(seed)
        self.state = self.rng.uniform(-0.1, 0.1, (n, 2))
        self.age = np.zeros(n)

    def step(self, action):
        torque = np.where(action == 1, 4.0, -4.0)
        angle, speed = self.state.T
        speed = speed + 0.05 * (9.8 * np.sin(angle) + torque) + self.rng.normal(0, 0.03, self.n)
        angle = angle + 0.05 * speed
        self.state = np.stack([angle, speed], 1)
        self.age += 1
        done = (np.abs(angle) > 0.4) | (self.age >= 150)
        reward = np.where(np.abs(angle) > 0.4, 0.0, 1.0)
        ended = self.age[done].tolist()
        k = int(done.sum())
        self.state[done] = self.rng.uniform(-0.1, 0.1, (k, 2))
        self.age[done] = 0
        return self.state.copy(), reward, done, ended


def layer_init(layer, std=math.sqrt(2)):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(2, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), 1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(2, 32)), nn.Tanh(), layer_init(nn.Linear(32, 2), 0.01))

    def evaluate(self, obs, action=None):
        dist = Categorical(logits=self.actor(obs))
        if action is None:
            action = dist.sample()
        return action, dist.log_prob(action), dist.entropy(), self.critic(obs).squeeze(-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    n_envs, n_steps, updates, epochs, gamma, lam, clip = 16, 48, 22, 4, 0.98, 0.95, 0.2
    env, agent = Poles(n_envs, a.seed), Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
    obs = torch.tensor(env.state, dtype=torch.float32) * 3
    ages = []
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - update / updates)
        store = {k: [] for k in ("obs", "act", "logp", "val", "rew", "done")}
        for _ in range(n_steps):
            with torch.no_grad():
                action, logp, _, value = agent.evaluate(obs)
            nxt, reward, done, ended = env.step(action.numpy())
            ages += ended
            for k, v in zip(store, (obs, action, logp, value, torch.tensor(reward, dtype=torch.float32),
                                    torch.tensor(done, dtype=torch.float32))):
                store[k].append(v)
            obs = torch.tensor(nxt, dtype=torch.float32) * 3
        data = {k: torch.stack(v) for k, v in store.items()}
        with torch.no_grad():
            next_value = agent.evaluate(obs)[3]
            adv, last = torch.zeros(n_steps, n_envs), torch.zeros(n_envs)
            for t in reversed(range(n_steps)):
                follow = next_value if t == n_steps - 1 else data["val"][t + 1]
                alive = 1 - data["done"][t]
                delta = data["rew"][t] + gamma * follow * alive - data["val"][t]
                last = delta + gamma * lam * alive * last
                adv[t] = last
            returns = adv + data["val"]
        flat = {k: v.flatten(0, 1) for k, v in data.items()}
        adv, returns = adv.flatten(), returns.flatten()
        for _ in range(epochs):
            for idx in torch.randperm(n_envs * n_steps).split(192):
                _, logp, entropy, value = agent.evaluate(flat["obs"][idx], flat["act"][idx])
                ratio = (logp - flat["logp"][idx]).exp()
                mb_adv = (adv[idx] - adv[idx].mean()) / (adv[idx].std() + 1e-8)
                pg_loss = torch.max(-mb_adv * ratio, -mb_adv * ratio.clamp(1 - clip, 1 + clip)).mean()
                v_loss = 0.5 * (value - returns[idx]).pow(2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if update % 7 == 6:
            print(f"update {update + 1} mean episode length {np.mean(ages[-20:]):.1f}")
    print(f"metric: {np.mean(ages[-20:]):.2f}")


if __name__ == "__main__":
    main()
