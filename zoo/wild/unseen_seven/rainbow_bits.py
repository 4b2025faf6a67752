"""Double dueling DQN with prioritised replay and n-step returns, on flipping bits with a goal (hindsight relabelling).

expect: nothing
style: hindsight goals, target network by soft updates, Huber loss with importance weights
metric: share of greedy episodes that reach the goal, higher is better
"""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn


class DuelingNet(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2 * bits, 96), nn.ReLU())
        self.value, self.advantage = nn.Linear(96, 1), nn.Linear(96, bits)

    def forward(self, x):
        h = self.body(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


class PrioritizedReplay:
    def __init__(self, capacity):
        self.rows, self.p, self.capacity, self.at = [], np.zeros(capacity), capacity, 0

    def add(self, row):
        top = self.p.max() if self.rows else 1.0
        if len(self.rows) < self.capacity:
            self.rows.append(row)
        else:
            self.rows[self.at] = row
        self.p[self.at] = top
        self.at = (self.at + 1) % self.capacity

    def sample(self, n, beta):
        p = self.p[: len(self.rows)] ** 0.6
        p = p / p.sum()
        idx = np.random.choice(len(self.rows), n, p=p)
        w = (len(self.rows) * p[idx]) ** -beta
        s, a, r, s2, end = zip(*(self.rows[i] for i in idx))
        as_tensor = lambda z: torch.tensor(np.array(z), dtype=torch.float32)
        return (
            idx,
            as_tensor(w / w.max()),
            as_tensor(s),
            torch.tensor(a),
            as_tensor(r),
            as_tensor(s2),
            as_tensor(end),
        )


def episode(q, bits, epsilon):
    state, goal = np.random.randint(0, 2, bits), np.random.randint(0, 2, bits)
    path = []
    for _ in range(bits + 2):
        if random.random() < epsilon:
            a = random.randrange(bits)
        else:
            with torch.no_grad():
                a = int(
                    q(
                        torch.tensor(np.concatenate([state, goal]), dtype=torch.float32)[None]
                    ).argmax()
                )
        after = state.copy()
        after[a] ^= 1
        path.append((state, a, after))
        state = after
        if (state == goal).all():
            break
    return path, goal


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bits", type=int, default=6)
    parser.add_argument("--episodes", type=int, default=450)
    args = parser.parse_args()
    random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
    q, target = DuelingNet(args.bits), DuelingNet(args.bits)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    replay, wins = PrioritizedReplay(8000), []
    for ep in range(args.episodes):
        path, goal = episode(q, args.bits, max(0.1, 1 - ep / 250))
        wins.append((path[-1][2] == goal).all())
        for g in (goal, path[-1][2], path[len(path) // 2][2]):
            for s, a, s2 in path:
                hit = (s2 == g).all()
                replay.add(
                    (
                        np.concatenate([s, g]),
                        a,
                        0.0 if hit else -1.0,
                        np.concatenate([s2, g]),
                        float(hit),
                    )
                )
        for _ in range(5):
            idx, w, s, a, r, s2, end = replay.sample(64, beta=0.4 + 0.6 * ep / args.episodes)
            with torch.no_grad():
                best = q(s2).argmax(1, keepdim=True)
                y = r + 0.97 * (1 - end) * target(s2).gather(1, best).squeeze(1)
            guess = q(s).gather(1, a[:, None]).squeeze(1)
            loss = (w * nn.functional.smooth_l1_loss(guess, y, reduction="none")).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            replay.p[idx] = (guess - y).abs().detach().numpy() + 1e-3
            with torch.no_grad():
                for p, t in zip(q.parameters(), target.parameters()):
                    t.lerp_(p, 0.02)
        if ep % 90 == 0:
            print(f"episode {ep} success {np.mean(wins[-90:]):.2f} loss {loss.item():.4f}")
    scores = []
    for _ in range(100):
        path, goal = episode(q, args.bits, 0.0)
        scores.append((path[-1][2] == goal).all())
    print("metric:", float(np.mean(scores)))


if __name__ == "__main__":
    main()
