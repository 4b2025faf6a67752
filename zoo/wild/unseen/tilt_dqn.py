"""DQN that should keep a marble on a shaking plank; the target adds the value of the next state also where the episode had ended, so falling off cost nothing and the agent never learned to stay on.

expect: missing-terminal-mask
line: target = reward + self.gamma * next_q
source: https://github.com/navneet-nmk/pytorch-rl/issues/2
metric: mean number of steps on the plank without exploration (at most 100), higher is better
"""
import argparse
import random
from collections import deque

import torch
import torch.nn as nn


class Plank:
    """Position and speed of the marble; push left, push right. +1 per step until it falls."""

    def reset(self):
        self.x, self.v, self.t = random.uniform(-0.3, 0.3), 0.0, 0
        return [self.x, self.v]

    def step(self, action):
        push = 0.06 if action == 1 else -0.06
        self.v = 0.95 * self.v + push + 0.08 * self.x + random.gauss(0, 0.03)
        self.x += self.v
        self.t += 1
        fell = abs(self.x) > 1
        return [self.x, self.v], 1.0, fell, self.t >= 100


class Agent:
    def __init__(self, gamma=0.95, lr=2e-3):
        self.gamma = gamma
        self.q = self._net()
        self.target_q = self._net()
        self.target_q.load_state_dict(self.q.state_dict())
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.memory = deque(maxlen=4000)

    def _net(self):
        return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))

    @torch.no_grad()
    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(2)
        return int(self.q(torch.tensor(state)).argmax())

    def learn(self, batch_size=64):
        batch = random.sample(self.memory, batch_size)
        state, action, reward, next_state, done = (torch.tensor(c) for c in zip(*batch))
        q = self.q(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            next_q = self.target_q(next_state).max(1).values
            target = reward + self.gamma * next_q
        loss = nn.functional.smooth_l1_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env_steps", type=int, default=2400)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)

    env, agent = Plank(), Agent()
    state, length, lengths, updates = env.reset(), 0, [], 0
    for step in range(args.env_steps):
        eps = max(0.1, 1.0 - step / 1200)
        action = agent.act(state, eps)
        next_state, reward, fell, timeout = env.step(action)
        agent.memory.append((state, action, reward, next_state, float(fell)))
        state, length = next_state, length + 1
        if fell or timeout:
            lengths.append(length)
            state, length = env.reset(), 0
        if step >= 200 and step % 2 == 0:
            agent.learn()
            updates += 1
            if updates % 40 == 0:
                agent.target_q.load_state_dict(agent.q.state_dict())
        if step % 600 == 599:
            print("step", step + 1, "recent episode length", round(sum(lengths[-10:]) / 10, 1))

    total = 0
    for _ in range(20):
        state, over = env.reset(), False
        while not over:
            state, _, fell, timeout = env.step(agent.act(state, 0.0))
            total += 1
            over = fell or timeout
    print("metric:", round(total / 20, 2))


if __name__ == "__main__":
    main()
