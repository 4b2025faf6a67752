"""Advantage actor-critic with a shared body on parallel environments; the value loss is far larger than the policy loss at first.

expect: nothing
style: A2C with entropy bonus and gradient clipping (looks like unbalanced loss terms)
"""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical


class Pole:
    """Many little poles at once: push left or right to keep the angle near zero. An episode has 40 steps."""

    def __init__(self, n):
        self.n = n

    def reset(self):
        self.state = 0.4 * torch.randn(self.n, 2)
        return self.state.clone()

    def step(self, action):
        angle, speed = self.state.unbind(1)
        speed = 0.95 * speed + 0.05 * angle + 0.12 * (2 * action.float() - 1)
        angle = angle + 0.3 * speed
        self.state = torch.stack([angle, speed], 1).clamp(-3, 3)
        return self.state.clone(), 2.0 - 2.0 * angle.clamp(-3, 3).abs()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.pi = nn.Linear(48, 2)
        self.v = nn.Linear(48, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def main(args):
    torch.manual_seed(args.seed)
    env = Pole(args.num_envs)
    model = ActorCritic()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr, eps=1e-5)
    obs, average = env.reset(), []
    for update in range(args.updates):
        if update % 8 == 0:
            obs = env.reset()
        log_probs, values, rewards, entropies = [], [], [], []
        for _ in range(5):
            dist, value = model(obs)
            action = dist.sample()
            obs, reward = env.step(action)
            log_probs.append(dist.log_prob(action))
            values.append(value)
            rewards.append(reward)
            entropies.append(dist.entropy())
        with torch.no_grad():
            R = model(obs)[1]
        returns = []
        for r in reversed(rewards):
            R = r + args.gamma * R
            returns.insert(0, R)
        returns, values = torch.stack(returns), torch.stack(values)
        advantage = returns - values
        policy_loss = -(torch.stack(log_probs) * advantage.detach()).mean()
        value_loss = advantage.pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        average.append(torch.stack(rewards).mean().item())
        if update % 80 == 0:
            print(f"update {update} reward {average[-1]:.3f} policy {policy_loss.item():.3f} value {value_loss.item():.3f}")
    print("metric: %.4f" % (sum(average[-40:]) / 40))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--num_envs", type=int, default=16)
    p.add_argument("--updates", type=int, default=400)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--gamma", type=float, default=0.9)
    main(p.parse_args())
