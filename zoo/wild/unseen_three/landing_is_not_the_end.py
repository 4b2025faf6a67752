"""The Q target bootstraps from the next state even when the episode has ended there: a crash costs nothing.

expect: terminal-bootstrapped
or: missing-terminal-mask
line: target = reward + GAMMA * best_next
source: https://github.com/navneet-nmk/pytorch-rl/issues/2
metric: mean length of greedy episodes, higher is better
"""

import argparse
import copy
import random
from collections import deque

import torch
import torch.nn as nn

GAMMA = 0.97
LIMIT = 150


class Hover:
    """Keep a drone between floor and ceiling: one point for every step in the air."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.h = self.rng.uniform(-0.3, 0.3)
        self.v = self.rng.uniform(-0.1, 0.1)
        self.t = 0
        return [self.h, self.v * 5]

    def step(self, action):
        self.v += (0.03, -0.03)[action] + self.rng.gauss(0, 0.01) + 0.01 * self.h
        self.h += self.v
        self.t += 1
        crashed = abs(self.h) > 1.0
        return [self.h, self.v * 5], 1.0, crashed, self.t >= LIMIT


def q_network():
    return nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))


def learn(q, target_q, optimizer, memory, batch_size=64):
    batch = random.sample(memory, batch_size)
    state, action, reward, next_state, done = (torch.tensor(c, dtype=torch.float32) for c in zip(*batch))
    value = q(state).gather(1, action.long().unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best_next = target_q(next_state).max(1).values
        target = reward + GAMMA * best_next
    loss = nn.functional.smooth_l1_loss(value, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q.parameters(), 10.0)
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=1800)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    env = Hover(random.Random(args.seed))
    q = q_network()
    target_q = copy.deepcopy(q)
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    memory = deque(maxlen=10000)

    state = env.reset()
    for update in range(args.updates):
        epsilon = max(0.1, 1.0 - update / 800)
        for _ in range(2):
            if random.random() < epsilon:
                action = random.randrange(2)
            else:
                with torch.no_grad():
                    action = q(torch.tensor([state])).argmax().item()
            next_state, reward, done, timeout = env.step(action)
            memory.append((state, action, reward, next_state, float(done)))
            state = env.reset() if done or timeout else next_state
        if len(memory) >= 200:
            loss = learn(q, target_q, optimizer, memory)
            if update % 300 == 0:
                print(f"update {update} loss {loss:.4f} epsilon {epsilon:.2f}")
        if update % 50 == 0:
            target_q.load_state_dict(q.state_dict())

    lengths = []
    for _ in range(20):
        state, over = env.reset(), False
        while not over:
            with torch.no_grad():
                action = q(torch.tensor([state])).argmax().item()
            state, _, done, timeout = env.step(action)
            over = done or timeout
        lengths.append(env.t)
    print("metric:", sum(lengths) / len(lengths))


if __name__ == "__main__":
    main()
