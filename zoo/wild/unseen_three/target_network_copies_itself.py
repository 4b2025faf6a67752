"""The update of the target network loads the target network into itself: the targets stay those of random weights.

expect: call-without-effect
or: target-never-updated
line: self.target_net.load_state_dict(self.target_net.state_dict())
source: https://github.com/thesouther/MARL/issues/8
metric: share of starts from which the goal is reached, higher is better
"""

import argparse

import torch
import torch.nn as nn

SIDE = 5
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]
GOAL = (SIDE - 1, SIDE - 1)
WALLS = {(1, 1), (1, 2), (3, 2), (3, 3), (2, 4)}


def cells():
    return [(r, c) for r in range(SIDE) for c in range(SIDE) if (r, c) not in WALLS]


def move(cell, action):
    r, c = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
    if not (0 <= r < SIDE and 0 <= c < SIDE) or (r, c) in WALLS:
        r, c = cell
    done = (r, c) == GOAL
    return (r, c), (1.0 if done else 0.0), done


def encode(cell):
    x = torch.zeros(SIDE * SIDE)
    x[cell[0] * SIDE + cell[1]] = 1.0
    return x


class QAgent:
    def __init__(self, gamma=0.9, lr=2e-3, update_every=40):
        self.gamma, self.update_every, self.learn_steps = gamma, update_every, 0
        self.eval_net = self.build()
        self.target_net = self.build()
        self.target_net.load_state_dict(self.eval_net.state_dict())
        self.optimizer = torch.optim.Adam(self.eval_net.parameters(), lr=lr)

    def build(self):
        return nn.Sequential(nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, len(MOVES)))

    def learn(self, s, a, r, s_next, done):
        q = self.eval_net(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            target = r + self.gamma * (1 - done) * self.target_net(s_next).max(1).values
        loss = nn.functional.mse_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.learn_steps += 1
        if self.learn_steps % self.update_every == 0:
            self.target_net.load_state_dict(self.target_net.state_dict())
        return loss.item()

    @torch.no_grad()
    def act(self, cell):
        return self.eval_net(encode(cell)).argmax().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1600)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    experience = []
    for cell in cells():
        if cell == GOAL:
            continue
        for action in range(len(MOVES)):
            following, reward, done = move(cell, action)
            experience.append((encode(cell), torch.tensor(action), torch.tensor(reward), encode(following), torch.tensor(float(done))))
    columns = [torch.stack(c) for c in zip(*experience)]

    agent = QAgent()
    for step in range(args.steps):
        pick = torch.randint(0, len(experience), (32,))
        loss = agent.learn(*[c[pick] for c in columns])
        if step % 200 == 0:
            print(f"step {step} loss {loss:.5f}")

    reached = 0
    starts = [cell for cell in cells() if cell != GOAL]
    for cell in starts:
        for _ in range(20):
            cell, _, done = move(cell, agent.act(cell))
            if done:
                reached += 1
                break
    print("metric:", reached / len(starts))


if __name__ == "__main__":
    main()
