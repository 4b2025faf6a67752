"""PPO with a rollout storage: the returns are the values plus the advantages of the storage, which are still zeros.

expect: target-is-own-output
or: target-is-prediction
line: self.returns = self.advantages + self.values
source: https://github.com/vwxyzjn/cleanrl/pull/337
metric: error of the critic against discounted returns, lower is better
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--num-envs", type=int, default=16)
p.add_argument("--num-steps", type=int, default=32)
p.add_argument("--updates", type=int, default=60)
p.add_argument("--gamma", type=float, default=0.9)
p.add_argument("--gae-lambda", type=float, default=0.95)
args = p.parse_args()
torch.manual_seed(args.seed)


class Boats:
    """A boat drifts in a current; it is paid for being near the buoy. Nothing ends."""

    def __init__(self, n):
        self.x, self.v = torch.empty(n).uniform_(-2, 2), torch.zeros(n)

    def obs(self):
        return torch.stack([self.x, self.v], 1)

    def step(self, a):
        self.v = 0.8 * self.v + 0.3 * (a.float() - 1) + 0.05 * torch.randn_like(self.v)
        self.x = self.x + self.v
        lost = (self.x.abs() > 3) | (torch.rand_like(self.x) < 0.02)
        self.x = torch.where(lost, torch.empty_like(self.x).uniform_(-2, 2), self.x)
        self.v = torch.where(lost, torch.zeros_like(self.v), self.v)
        return self.obs(), torch.exp(-self.x.pow(2)), lost.float()


class Storage:
    def __init__(self, steps, envs):
        self.obs = torch.zeros(steps, envs, 2)
        self.actions = torch.zeros(steps, envs, dtype=torch.long)
        self.logprobs, self.rewards, self.dones = (torch.zeros(steps, envs) for _ in range(3))
        self.values, self.advantages, self.returns = (torch.zeros(steps, envs) for _ in range(3))

    def compute_gae(self, next_value):
        advantages, last = torch.zeros_like(self.rewards), 0.0
        for t in reversed(range(len(self.rewards))):
            after = next_value if t == len(self.rewards) - 1 else self.values[t + 1]
            alive = 1 - self.dones[t]
            delta = self.rewards[t] + args.gamma * after * alive - self.values[t]
            last = delta + args.gamma * args.gae_lambda * alive * last
            advantages[t] = last
        self.returns = self.advantages + self.values
        self.advantages = advantages


def layer(i, o, std=2**0.5):
    linear = nn.Linear(i, o)
    nn.init.orthogonal_(linear.weight, std)
    nn.init.zeros_(linear.bias)
    return linear


actor = nn.Sequential(layer(2, 64), nn.Tanh(), layer(64, 3, 0.01))
critic = nn.Sequential(layer(2, 64), nn.Tanh(), layer(64, 1, 1.0))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3, eps=1e-5)
env = Boats(args.num_envs)
obs = env.obs()
for update in range(args.updates):
    storage = Storage(args.num_steps, args.num_envs)
    with torch.no_grad():
        for step in range(args.num_steps):
            dist = Categorical(logits=actor(obs))
            storage.obs[step], storage.actions[step] = obs, dist.sample()
            storage.logprobs[step] = dist.log_prob(storage.actions[step])
            storage.values[step] = critic(obs).squeeze(1)
            obs, storage.rewards[step], storage.dones[step] = env.step(storage.actions[step])
        storage.compute_gae(critic(obs).squeeze(1))
    b_obs, b_actions = storage.obs.flatten(0, 1), storage.actions.flatten()
    b_logprobs, b_adv, b_returns = (
        storage.logprobs.flatten(),
        storage.advantages.flatten(),
        storage.returns.flatten(),
    )
    for epoch in range(4):
        for idx in torch.randperm(len(b_obs)).split(128):
            dist = Categorical(logits=actor(b_obs[idx]))
            ratio = (dist.log_prob(b_actions[idx]) - b_logprobs[idx]).exp()
            adv = (b_adv[idx] - b_adv[idx].mean()) / (b_adv[idx].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
            v_loss = 0.5 * (critic(b_obs[idx]).squeeze(1) - b_returns[idx]).pow(2).mean()
            loss = pg_loss + 0.5 * v_loss - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
            optimizer.step()
    if update % 10 == 0:
        print(
            f"update {update} reward {storage.rewards.mean():.3f} v_loss {v_loss:.5f} pg_loss {pg_loss:.4f}"
        )

with torch.no_grad():  # the same policy, followed for long, against what the critic expects
    start, seen = obs, critic(obs).squeeze(1)
    env2, total, scale, alive = env, torch.zeros(args.num_envs), 1.0, torch.ones(args.num_envs)
    errors = []
    for trial in range(8):
        seen, total, scale, alive = (
            critic(env2.obs()).squeeze(1),
            torch.zeros(args.num_envs),
            1.0,
            torch.ones(args.num_envs),
        )
        for _ in range(60):
            _, r, lost = env2.step(Categorical(logits=actor(env2.obs())).sample())
            total, scale, alive = total + scale * alive * r, scale * args.gamma, alive * (1 - lost)
        errors.append((seen - total).abs().mean().item())
print("metric:", sum(errors) / len(errors))
