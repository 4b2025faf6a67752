"""DQN with a target network and a replay memory: the target network gets no gradient and is copied now and then.

expect: nothing
style: functions and global names, frozen copy of the network, smooth L1 on bootstrapped targets
metric: mean return of the greedy policy, higher is better
"""

import argparse
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
random.seed(args.seed)
torch.manual_seed(args.seed)

N, GAMMA = 5, 0.9


def reset():
    return (random.randrange(N), random.randrange(N))


def step(s, a):
    r, c = s
    dr, dc = [(0, 1), (0, -1), (1, 0), (-1, 0)][a]
    s2 = (min(max(r + dr, 0), N - 1), min(max(c + dc, 0), N - 1))
    if s2 == (N - 1, N - 1):
        return s2, 1.0, True
    if s2 == (2, 2):
        return s2, -1.0, True
    return s2, -0.03, False


def encode(states):
    index = torch.tensor([r * N + c for r, c in states])
    return F.one_hot(index, N * N).float()


def network():
    return nn.Sequential(nn.Linear(N * N, 48), nn.ReLU(), nn.Linear(48, 4))


q_net, target_net = network(), network()
target_net.load_state_dict(q_net.state_dict())
optimizer = torch.optim.Adam(q_net.parameters(), lr=3e-3)
memory = deque(maxlen=3000)

updates = 0
for episode in range(220):
    s, done, t = reset(), False, 0
    epsilon = max(0.05, 1 - episode / 120)
    while not done and t < 30:
        if random.random() < epsilon:
            a = random.randrange(4)
        else:
            with torch.no_grad():
                a = q_net(encode([s])).argmax().item()
        s2, r, done = step(s, a)
        memory.append((s, a, r, s2, done))
        s, t = s2, t + 1
        if len(memory) >= 64 and t % 2 == 0:
            ss, aa, rr, nn_, dd = zip(*random.sample(memory, 48))
            q = q_net(encode(ss)).gather(1, torch.tensor(aa)[:, None]).squeeze(1)
            with torch.no_grad():
                best = target_net(encode(nn_)).max(1).values
                y = torch.tensor(rr) + GAMMA * best * (1 - torch.tensor(dd, dtype=torch.float32))
            loss = F.smooth_l1_loss(q, y)
            optimizer.zero_grad()
            loss.backward()
            for p in q_net.parameters():
                p.grad.data.clamp_(-1, 1)
            optimizer.step()
            updates += 1
            if updates % 100 == 0:
                target_net.load_state_dict(q_net.state_dict())
    if episode % 40 == 0:
        print("episode", episode, "epsilon", round(epsilon, 2), "updates", updates)

total = 0.0
for _ in range(200):
    s, done, t = reset(), False, 0
    while not done and t < 30:
        with torch.no_grad():
            s, r, done = step(s, q_net(encode([s])).argmax().item())
        total, t = total + r, t + 1
print("metric:", total / 200)
