"""Frame classifier trained with gradients accumulated over 16 small batches; the loss was not divided by 16, each update was sixteen times too long and the training blew up and never settled.

expect: unscaled-accumulation
or: learning-rate-too-high
line: loss.backward()
source: https://github.com/hirofumi0810/neural_sp/issues/168
metric: frame accuracy on the test set, higher is better
"""
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--accum_grad_n_steps", type=int, default=16)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--n_updates", type=int, default=180)
args = parser.parse_args()
torch.manual_seed(args.seed)

N_PHONES, N_FEAT = 12, 40

# frames: class template + coarticulation with a second phone + noise
templates = torch.randn(N_PHONES, N_FEAT)


def frames(n):
    y = torch.randint(0, N_PHONES, (n,))
    other = torch.randint(0, N_PHONES, (n,))
    x = templates[y] + 0.5 * templates[other] + 0.8 * torch.randn(n, N_FEAT)
    return x, y


x_train, y_train = frames(4000)
x_test, y_test = frames(1000)

model = nn.Sequential(
    nn.Linear(N_FEAT, 96), nn.ReLU(),
    nn.Linear(96, 96), nn.ReLU(),
    nn.Linear(96, N_PHONES),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

step, n_accum, reported = 0, 0, 0.0
while step < args.n_updates:
    idx = torch.randint(0, len(x_train), (args.batch_size,))
    loss = criterion(model(x_train[idx]), y_train[idx])
    reported += loss.item()
    loss.backward()
    n_accum += 1
    if n_accum >= args.accum_grad_n_steps:
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 30 == 0:
            print("update:%d loss:%.3f" % (step, reported / n_accum))
        n_accum, reported = 0, 0.0

with torch.no_grad():
    acc = (model(x_test).argmax(1) == y_test).float().mean().item()
print("metric: %.4f" % acc)
