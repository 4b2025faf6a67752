"""Deep Q-learning on a 5×5 grid with replay and a target network that no optimizer knows.

expect: nothing
style: DQN, Huber loss, epsilon-greedy, target network copied every 50 steps (looks like a second network forgotten)
"""

import argparse
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "done"))


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class Grid:
    moves = [(0, 1), (0, -1), (1, 0), (-1, 0)]

    def reset(self):
        self.at, self.t = [random.randrange(5), random.randrange(5)], 0
        return self.observe()

    def observe(self):
        x = torch.zeros(25)
        x[5 * self.at[0] + self.at[1]] = 1
        return x

    def step(self, action):
        dr, dc = self.moves[action]
        self.at = [min(4, max(0, self.at[0] + dr)), min(4, max(0, self.at[1] + dc))]
        self.t += 1
        home = self.at == [2, 3]
        return self.observe(), (1.0 if home else -0.02), home or self.t >= 25, home


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 48)
        self.layer2 = nn.Linear(48, n_actions)

    def forward(self, x):
        return self.layer2(torch.relu(self.layer1(x)))


BATCH_SIZE, GAMMA = 32, 0.9


def optimize_model(policy_net, target_net, optimizer, memory):
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    state, next_state = torch.stack(batch.state), torch.stack(batch.next_state)
    action, reward = torch.tensor(batch.action).unsqueeze(1), torch.tensor(batch.reward)
    done = torch.tensor(batch.done, dtype=torch.float)
    q = policy_net(state).gather(1, action).squeeze(1)
    with torch.no_grad():
        expected = reward + GAMMA * (1 - done) * target_net(next_state).max(1).values
    loss = nn.SmoothL1Loss()(q, expected)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    random.seed(seed)
    torch.manual_seed(seed)
    policy_net, target_net = DQN(25, 4), DQN(25, 4)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=5e-3, amsgrad=True)
    memory, env, steps, lengths = ReplayMemory(2000), Grid(), 0, []
    for episode in range(140):
        state, done = env.reset(), False
        while not done:
            eps = max(0.05, 0.9 * 0.98**episode)
            if random.random() < eps:
                action = random.randrange(4)
            else:
                with torch.no_grad():
                    action = policy_net(state).argmax().item()
            next_state, reward, done, home = env.step(action)
            memory.push(state, action, next_state, reward, home)
            state, steps = next_state, steps + 1
            optimize_model(policy_net, target_net, optimizer, memory)
            if steps % 50 == 0:
                target_net.load_state_dict(policy_net.state_dict())
        lengths.append(env.t)
        if episode % 20 == 0:
            print("episode", episode, "steps", env.t)
    print("metric: %.2f" % (sum(lengths[-40:]) / 40))


main()
