"""Double DQN with a replay buffer and a soft target finds the way through a maze; the loss grows while the values do.

expect: nothing
style: replay buffer of tensors, double Q-learning, soft updates, epsilon schedule
metric: share of the last 50 episodes that reach the goal, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

MAZE = ["S..#....", ".#.#.##.", ".#...#..", ".####.#.", "......#G"]
HEIGHT, WIDTH = len(MAZE), len(MAZE[0])
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def encode(at):
    x = torch.zeros(HEIGHT * WIDTH)
    x[at[0] * WIDTH + at[1]] = 1
    return x


def move(at, action):
    y, x = at[0] + MOVES[action][0], at[1] + MOVES[action][1]
    if not (0 <= y < HEIGHT and 0 <= x < WIDTH) or MAZE[y][x] == "#":
        return at, -0.05, False
    return (y, x), (1.0 if MAZE[y][x] == "G" else -0.01), MAZE[y][x] == "G"


class Buffer:
    def __init__(self, size):
        self.s, self.s2 = torch.zeros(size, HEIGHT * WIDTH), torch.zeros(size, HEIGHT * WIDTH)
        self.a, self.r, self.d = torch.zeros(size, dtype=torch.long), torch.zeros(size), torch.zeros(size)
        self.n, self.size = 0, size

    def add(self, s, a, r, s2, d):
        i = self.n % self.size
        self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i] = s, a, r, s2, float(d)
        self.n += 1

    def sample(self, k):
        i = torch.randint(min(self.n, self.size), (k,))
        return self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed), torch.manual_seed(args.seed)
    make = lambda: nn.Sequential(nn.Linear(HEIGHT * WIDTH, 64), nn.ReLU(), nn.Linear(64, 4))
    online, target, buffer = make(), make(), Buffer(5000)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
    steps, wins = 0, []
    for episode in range(160):
        at, done, length = (0, 0), False, 0
        while not done and length < 80:
            epsilon = max(0.05, 1 - steps / 4000)
            if random.random() < epsilon:
                action = random.randrange(4)
            else:
                with torch.no_grad():
                    action = online(encode(at)).argmax().item()
            new, reward, done = move(at, action)
            buffer.add(encode(at), action, reward, encode(new), done)
            at, length, steps = new, length + 1, steps + 1
            if steps > 300 and steps % 2 == 0:
                s, a, r, s2, d = buffer.sample(64)
                with torch.no_grad():
                    best = online(s2).argmax(1, keepdim=True)
                    goal = r + 0.97 * (1 - d) * target(s2).gather(1, best).squeeze(1)
                loss = F.smooth_l1_loss(online(s).gather(1, a[:, None]).squeeze(1), goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    for slow, fast in zip(target.parameters(), online.parameters()):
                        slow.lerp_(fast, 0.02)
        wins.append(float(done))
        if episode % 30 == 0:
            print("episode", episode, "length", length, "epsilon", round(epsilon, 2))
    print("metric:", sum(wins[-50:]) / 50)
