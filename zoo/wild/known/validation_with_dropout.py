"""Train and validate in one function, with torch.no_grad() but without model.eval(): dropout of a half stays on in the test.

expect: train-mode-evaluation
line: output = model(x)
source: https://github.com/udacity/deep-learning-v2-pytorch/issues/3
metric: test accuracy as printed, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data.sampler import SubsetRandomSampler


# define the NN architecture
class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        hidden_1, hidden_2 = 40, 40
        self.fc1 = nn.Linear(64, hidden_1)
        self.fc2 = nn.Linear(hidden_1, hidden_2)
        self.fc3 = nn.Linear(hidden_2, 10)
        # dropout prevents overfitting of data
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        x = self.dropout(F.relu(self.fc1(x)))
        x = self.dropout(F.relu(self.fc2(x)))
        return self.fc3(x)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
np.random.seed(seed)
torch.manual_seed(seed)

data, target = load_digits(return_X_y=True)
dataset = torch.utils.data.TensorDataset(torch.tensor((data - 4.9) / 6.0).float(), torch.tensor(target))
indices = np.random.permutation(len(dataset))
train_loader = torch.utils.data.DataLoader(dataset, batch_size=20, sampler=SubsetRandomSampler(indices[:1200]))
valid_loader = torch.utils.data.DataLoader(dataset, batch_size=100, sampler=SubsetRandomSampler(indices[1200:1500]))
test_loader = torch.utils.data.DataLoader(dataset, batch_size=99, sampler=SubsetRandomSampler(indices[1500:]))

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)


def evaluate(loader):
    loss, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            output = model(x)
            loss += criterion(output, y).item() * x.size(0)
            correct += (output.argmax(1) == y).sum().item()
            n += x.size(0)
    return loss / n, correct / n


for epoch in range(10):
    train_loss = 0.0
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * x.size(0)
    valid_loss, _ = evaluate(valid_loader)
    print("Epoch: {} \tTraining Loss: {:.6f} \tValidation Loss: {:.6f}".format(epoch + 1, train_loss / 1200, valid_loss))

print("metric: {:.4f}".format(evaluate(test_loader)[1]))
