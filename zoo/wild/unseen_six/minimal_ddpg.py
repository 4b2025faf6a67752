"""DDPG in few lines: done is stored as a mask and then not used in the target, so crashing into the wall costs nothing.

expect: missing-terminal-mask
or: terminal-state-bootstrapped, terminal-bootstrapped
line: target = r + gamma * q_target(s_prime, mu_target(s_prime))
source: https://github.com/seungeunrho/minimalRL/pull/21
metric: mean return of the last 20 episodes, higher is better
"""

import argparse
import collections
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

gamma, tau, batch_size = 0.95, 0.02, 48


class Drone:
    """Hovers in wind between floor and ceiling; one point for every step in the air."""

    def reset(self):
        self.h, self.v, self.t = random.uniform(-0.2, 0.2), 0.0, 0
        return [self.h, self.v]

    def step(self, a):
        self.v += 0.25 * a - 0.12 + random.uniform(-0.03, 0.03)
        self.h += 0.3 * self.v
        self.t += 1
        crashed = abs(self.h) > 1
        return [self.h, self.v], 1.0, crashed, self.t >= 60


class ReplayBuffer:
    def __init__(self):
        self.buffer = collections.deque(maxlen=5000)

    def put(self, transition):
        self.buffer.append(transition)

    def sample(self, n):
        s, a, r, s_prime, done_mask = zip(*random.sample(self.buffer, n))
        as_column = lambda x: torch.tensor(x, dtype=torch.float).view(n, 1)
        return torch.tensor(s), as_column(a), as_column(r), torch.tensor(s_prime), as_column(done_mask)


class MuNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc_mu = nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 1)

    def forward(self, x):
        return torch.tanh(self.fc_mu(F.relu(self.fc2(F.relu(self.fc1(x))))))


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc_s, self.fc_a, self.fc_q, self.fc_out = nn.Linear(2, 32), nn.Linear(1, 32), nn.Linear(64, 32), nn.Linear(32, 1)

    def forward(self, x, a):
        h = torch.cat([F.relu(self.fc_s(x)), F.relu(self.fc_a(a))], 1)
        return self.fc_out(F.relu(self.fc_q(h)))


def train(mu, mu_target, q, q_target, memory, q_optimizer, mu_optimizer):
    s, a, r, s_prime, done_mask = memory.sample(batch_size)
    with torch.no_grad():
        target = r + gamma * q_target(s_prime, mu_target(s_prime))
    q_loss = F.smooth_l1_loss(q(s, a), target)
    q_optimizer.zero_grad()
    q_loss.backward()
    q_optimizer.step()
    mu_loss = -q(s, mu(s)).mean()
    mu_optimizer.zero_grad()
    mu_loss.backward()
    mu_optimizer.step()
    with torch.no_grad():
        for net, slow in ((mu, mu_target), (q, q_target)):
            for p, p_slow in zip(net.parameters(), slow.parameters()):
                p_slow.lerp_(p, tau)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed), torch.manual_seed(args.seed)
    env, memory, scores, steps = Drone(), ReplayBuffer(), [], 0
    q, q_target, mu, mu_target = QNet(), QNet(), MuNet(), MuNet()
    q_target.load_state_dict(q.state_dict()), mu_target.load_state_dict(mu.state_dict())
    mu_optimizer, q_optimizer = optim.Adam(mu.parameters(), lr=1e-3), optim.Adam(q.parameters(), lr=2e-3)
    while steps < 3500:
        s, done, score = env.reset(), False, 0.0
        while not done:
            with torch.no_grad():
                a = float(mu(torch.tensor([s]))) + random.gauss(0, 0.2)
            s_prime, r, crashed, over = env.step(max(-1.0, min(1.0, a)))
            memory.put((s, a, r, s_prime, 0.0 if crashed else 1.0))
            s, score, steps, done = s_prime, score + r, steps + 1, crashed or over
            if len(memory.buffer) > 300 and steps % 2 == 0:
                train(mu, mu_target, q, q_target, memory, q_optimizer, mu_optimizer)
        scores.append(score)
        if len(scores) % 20 == 0:
            print("# of episode :{}, avg score : {:.1f}".format(len(scores), sum(scores[-20:]) / 20))
    print("metric:", sum(scores[-20:]) / 20)


if __name__ == "__main__":
    main()
