"""The copying memory task: three symbols, a pause, then the network has to say them again. The targets are inputs, later.

expect: nothing
metric: accuracy on the recalled symbols, higher is better
"""

import argparse

import torch
import torch.nn as nn

N_SYMBOLS, N_RECALL, PAUSE = 6, 3, 3


def copying_data(batch):
    seq = torch.randint(1, N_SYMBOLS + 1, (batch, N_RECALL))
    total = N_RECALL + PAUSE + N_RECALL
    x = torch.zeros(batch, total, dtype=torch.long)
    y = torch.zeros(batch, total, dtype=torch.long)
    x[:, :N_RECALL] = seq
    x[:, N_RECALL + PAUSE - 1] = N_SYMBOLS + 1  # the cue
    y[:, -N_RECALL:] = seq
    return x, y


class Recall(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.lstm = nn.LSTM(N_SYMBOLS + 2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, N_SYMBOLS + 2)

    def forward(self, x):
        one_hot = nn.functional.one_hot(x, N_SYMBOLS + 2).float()
        return self.out(self.lstm(one_hot)[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = Recall()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1800):
        x, y = copying_data(40)
        loss = nn.functional.cross_entropy(model(x).transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 180 == 0:
            print(f"step {step:4d} | loss {loss.item():.5f}")
    with torch.no_grad():
        x, y = copying_data(500)
        guess = model(x).argmax(-1)
    print("metric:", (guess[:, -N_RECALL:] == y[:, -N_RECALL:]).float().mean().item())


if __name__ == "__main__":
    main()
