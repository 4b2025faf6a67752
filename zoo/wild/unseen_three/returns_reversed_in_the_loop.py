"""reverse() stands inside the loop over the rewards: the returns stand beside the wrong steps.

expect: target-misaligned
line: returns.reverse()
source: https://github.com/PacktPublishing/Tensorflow-2-Reinforcement-Learning-Cookbook/issues/27
metric: mean reward per step of the policy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Junction:
    """Each step shows which of four roads is full; opening that road pays, the queue of the others grows a little."""

    def __init__(self, steps=16):
        self.steps = steps

    def reset(self):
        self.t = 0
        self.full = torch.randint(0, 4, ()).item()
        return self.observe()

    def observe(self):
        queues = 0.3 * torch.randn(4)
        queues[self.full] += 1.0
        return queues

    def step(self, road):
        reward = 1.0 if road == self.full else 0.0
        self.t += 1
        self.full = torch.randint(0, 4, ()).item()
        return self.observe(), reward, self.t >= self.steps


def discounted(rewards, gamma):
    returns, running = [], 0.0
    for reward in rewards[::-1]:
        running = reward + gamma * running
        returns.append(running)
        returns.reverse()
    return torch.tensor(returns)


def play(env, policy):
    log_probs, rewards, done = [], [], False
    state = env.reset()
    while not done:
        choice = Categorical(logits=policy(state))
        road = choice.sample()
        log_probs.append(choice.log_prob(road))
        state, reward, done = env.step(road.item())
        rewards.append(reward)
    return torch.stack(log_probs), rewards


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=160)
    parser.add_argument("--gamma", type=float, default=0.5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env = Junction()
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)

    for iteration in range(args.iterations):
        all_log_probs, all_returns, pay = [], [], 0.0
        for _ in range(4):
            log_probs, rewards = play(env, policy)
            all_log_probs.append(log_probs)
            all_returns.append(discounted(rewards, args.gamma))
            pay += sum(rewards) / len(rewards)
        returns = torch.cat(all_returns)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.cat(all_log_probs) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 50 == 0:
            print(f"iteration {iteration}: reward per step {pay / 4:.3f}")

    with torch.no_grad():
        score = [sum(play(env, policy)[1]) / env.steps for _ in range(40)]
    print("metric:", sum(score) / len(score))


if __name__ == "__main__":
    main()
