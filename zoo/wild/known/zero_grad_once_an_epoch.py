"""zero_grad() stands at the beginning of the epoch instead of the iteration: gradients pile up from batch to batch.

expect: missing-zero-grad
line: optimizer.zero_grad()
source: https://github.com/pytorch/pytorch/issues/47175
metric: test accuracy, higher is better
"""

import argparse
from time import time

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

x, y = load_digits(return_X_y=True)
x = (torch.tensor(x, dtype=torch.float32) - 4.9) / 6.0
y = torch.tensor(y)
idx = torch.randperm(len(x))
trainloader = DataLoader(TensorDataset(x[idx[:1300]], y[idx[:1300]]), batch_size=32, shuffle=True)
valloader = DataLoader(TensorDataset(x[idx[1300:]], y[idx[1300:]]), batch_size=64)

input_size, hidden_sizes, output_size = 64, [64, 32], 10
model = nn.Sequential(
    nn.Linear(input_size, hidden_sizes[0]),
    nn.ReLU(),
    nn.Linear(hidden_sizes[0], hidden_sizes[1]),
    nn.ReLU(),
    nn.Linear(hidden_sizes[1], output_size),
    nn.LogSoftmax(dim=1),
)
criterion = nn.NLLLoss()
optimizer = optim.SGD(model.parameters(), lr=0.03, momentum=0.9)

time0 = time()
epochs = 6
for e in range(epochs):
    running_loss = 0
    optimizer.zero_grad()
    for images, labels in trainloader:
        output = model(images)
        loss = criterion(output, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    print("Epoch {} - Training loss: {}".format(e, running_loss / len(trainloader)))
print("Training Time (in minutes) =", (time() - time0) / 60)

correct_count, all_count = 0, 0
for images, labels in valloader:
    with torch.no_grad():
        logps = model(images)
    correct_count += (logps.argmax(1) == labels).sum().item()
    all_count += len(labels)
print("metric:", correct_count / all_count)
