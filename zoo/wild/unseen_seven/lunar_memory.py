"""Q-learning from whole episodes: the memory keeps the very lists that the next episode clears and fills again.

expect: replay-keeps-one-episode
or: repeated-batch, samples-repeated
line: self.state_traj.clear()
source: https://github.com/Itomigna2/Muesli-lunarlander/issues/1
metric: share of greedy landings, higher is better
"""

import random
import sys
from collections import deque

import torch
import torch.nn as nn

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
random.seed(seed)
torch.manual_seed(seed)

SIZE, LIMIT = 9, 20
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


class Pad:
    """A lander over a field; the pad lies elsewhere in every episode."""

    def reset(self):
        self.at = [random.randrange(SIZE), random.randrange(SIZE)]
        self.goal = [random.randrange(SIZE), random.randrange(SIZE)]
        self.t = 0
        return self.view()

    def view(self):
        return [
            v / SIZE
            for v in (*self.at, *self.goal, self.goal[0] - self.at[0], self.goal[1] - self.at[1])
        ]

    def step(self, action):
        self.t += 1
        for axis in (0, 1):
            self.at[axis] = min(SIZE - 1, max(0, self.at[axis] + MOVES[action][axis]))
        landed = self.at == self.goal
        return self.view(), 1.0 if landed else -0.05, landed, landed or self.t == LIMIT


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(
            nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
        )
        self.state_traj, self.action_traj, self.r_traj, self.end_traj = [], [], [], []
        self.state_replay, self.action_replay = deque(maxlen=300), deque(maxlen=300)
        self.r_replay, self.end_replay = deque(maxlen=300), deque(maxlen=300)

    def self_play(self, env, epsilon):
        self.state_traj.clear()
        self.action_traj.clear()
        self.r_traj.clear()
        self.end_traj.clear()
        state, over, total = env.reset(), False, 0.0
        self.state_traj.append(state)
        while not over:
            if random.random() < epsilon:
                action = random.randrange(4)
            else:
                with torch.no_grad():
                    action = int(self.q(torch.tensor(state)).argmax())
            state, r, landed, over = env.step(action)
            self.state_traj.append(state)
            self.action_traj.append(action)
            self.r_traj.append(r)
            self.end_traj.append(float(landed))
            total += r
        self.state_replay.append(self.state_traj)
        self.action_replay.append(self.action_traj)
        self.r_replay.append(self.r_traj)
        self.end_replay.append(self.end_traj)
        return total

    def sample(self, episodes=12):
        s, a, r, s2, end = [], [], [], [], []
        for _ in range(episodes):
            i = random.randrange(len(self.r_replay))
            s += self.state_replay[i][:-1]
            s2 += self.state_replay[i][1:]
            a += self.action_replay[i]
            r += self.r_replay[i]
            end += self.end_replay[i]
        return (
            torch.tensor(s),
            torch.tensor(a),
            torch.tensor(r),
            torch.tensor(s2),
            torch.tensor(end),
        )


env, agent = Pad(), Agent()
target = Agent()
target.load_state_dict(agent.state_dict())
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
scores = deque(maxlen=50)
for episode in range(170):
    scores.append(agent.self_play(env, epsilon=max(0.1, 1 - episode / 120)))
    for _ in range(12):
        s, a, r, s2, end = agent.sample()
        with torch.no_grad():
            y = r + 0.95 * (1 - end) * target.q(s2).max(1).values
        loss = nn.functional.smooth_l1_loss(agent.q(s).gather(1, a[:, None]).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if episode % 10 == 0:
        target.load_state_dict(agent.state_dict())
    if episode % 20 == 0:
        print("episode", episode, "score", sum(scores) / len(scores), "loss", loss.item())

landings = 0
for _ in range(200):
    state, over = env.reset(), False
    while not over:
        with torch.no_grad():
            action = int(agent.q(torch.tensor(state)).argmax())
        state, _, landed, over = env.step(action)
    landings += landed
print("metric:", landings / 200)
