"""REINFORCE with a running baseline on a small grid where a taxi has to find its passenger.

expect: nothing
style: policy gradient from scratch; the "loss" has no floor, changes sign and says nothing about progress, the return does
"""
import argparse

import torch
from torch import nn
from torch.distributions import Categorical

SIZE, HORIZON, ENVS = 5, 16, 32
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Grid:
    """A batch of taxis; reward 1 for reaching the passenger, minus 0.05 per step."""

    def reset(self):
        self.taxi = torch.randint(0, SIZE, (ENVS, 2))
        self.goal = torch.randint(0, SIZE, (ENVS, 2))
        self.alive = (self.taxi != self.goal).any(1)
        return self.observe()

    def observe(self):
        return torch.cat([self.taxi, self.goal, self.goal - self.taxi], 1).float() / SIZE - 0.3

    def step(self, action):
        moved = (self.taxi + MOVES[action]).clamp(0, SIZE - 1)
        self.taxi = torch.where(self.alive[:, None], moved, self.taxi)
        found = (self.taxi == self.goal).all(1) & self.alive
        reward = torch.where(self.alive, torch.full((ENVS,), -0.05), torch.zeros(ENVS)) + found.float()
        mask = self.alive.float()
        self.alive = self.alive & ~found
        return self.observe(), reward, mask


def rollout(env, policy, greedy=False):
    obs = env.reset()
    log_probs, rewards, masks = [], [], []
    for _ in range(HORIZON):
        dist = Categorical(logits=policy(obs))
        action = dist.logits.argmax(1) if greedy else dist.sample()
        log_probs.append(dist.log_prob(action))
        obs, reward, mask = env.step(action)
        rewards.append(reward)
        masks.append(mask)
    return torch.stack(log_probs), torch.stack(rewards), torch.stack(masks)


def discounted(rewards, gamma=0.97):
    out, running = [], torch.zeros(rewards.size(1))
    for r in reversed(rewards):
        running = r + gamma * running
        out.append(running)
    return torch.stack(out[::-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env = Grid()
    policy = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    baseline = 0.0
    for episode in range(1, 201):
        log_probs, rewards, masks = rollout(env, policy)
        returns = discounted(rewards)
        mean_return = (returns * masks).sum() / masks.sum()
        baseline = 0.9 * baseline + 0.1 * mean_return.item()
        loss = -(log_probs * (returns - baseline) * masks).sum() / masks.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if episode % 50 == 0:
            print(f"episode {episode} return {rewards.sum(0).mean().item():.3f} loss {loss.item():+.3f}")
    with torch.no_grad():
        final = torch.stack([rollout(env, policy, greedy=True)[1].sum(0).mean() for _ in range(10)]).mean()
    print(f"metric: {final.item():.4f}")


if __name__ == "__main__":
    main()
