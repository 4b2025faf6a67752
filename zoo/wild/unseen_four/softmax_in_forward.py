"""The forward ends with softmax, and nn.CrossEntropyLoss applies log-softmax to it once more.

expect: softmax-before-cross-entropy
or: output-misfits-loss
line: return F.softmax(x, dim=1)
source: https://discuss.pytorch.org/t/cross-entropy-loss-is-not-decreasing/43814/16
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 2 * 2, 48)
        self.fc2 = nn.Linear(48, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        x = self.fc2(x)
        return F.softmax(x, dim=1)


digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
labels = torch.tensor(digits.target)
idx_train, idx_test = train_test_split(torch.arange(len(labels)), test_size=0.25, random_state=args.seed)
train_loader = DataLoader(TensorDataset(images[idx_train], labels[idx_train]), batch_size=32, shuffle=True)

net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

for epoch in range(8):
    net.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print("epoch %d loss = %.4f" % (epoch, running / len(train_loader)))

net.eval()
with torch.no_grad():
    acc = (net(images[idx_test]).argmax(1) == labels[idx_test]).float().mean().item()
print("metric:", acc)
