"""Two linear layers with nothing between them are to learn XOR.

expect: missing-activation
line: model = nn.Sequential(nn.Linear(input_dim, hidden_dim), nn.Linear(hidden_dim, output_dim), nn.Sigmoid())
source: https://discuss.pytorch.org/t/unable-to-learn-xor-representation-using-2-layers-of-multi-layered-perceptron-mlp/13287/3
metric: accuracy, higher is better
"""

import argparse

import numpy as np
import torch
from torch import nn, optim

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)

# two noisy gates
rng = np.random.default_rng(seed)
bits = rng.integers(0, 2, (400, 2))
xor_input = torch.tensor(bits + 0.1 * rng.standard_normal((400, 2)), dtype=torch.float32)
xor_output = torch.tensor(bits[:, :1] ^ bits[:, 1:], dtype=torch.float32)

num_data, input_dim = xor_input.shape
output_dim = xor_output.shape[1]
hidden_dim = 8
learning_rate = 0.3
num_epochs = 1500

model = nn.Sequential(nn.Linear(input_dim, hidden_dim), nn.Linear(hidden_dim, output_dim), nn.Sigmoid())
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)

for epoch in range(num_epochs):
    predictions = model(xor_input)
    loss = criterion(predictions, xor_output)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 250 == 0:
        print(epoch, loss.item())

with torch.no_grad():
    print("metric:", ((model(xor_input) > 0.5).float() == xor_output).float().mean().item())
