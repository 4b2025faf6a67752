"""A CNN for ten digits with a ReLU after the last layer too: some logits can never say no, some die.

expect: output-misfits-loss
or: dead-units
line: x = F.relu(self.fc2(x))
source: https://github.com/huyng/tensorflow-vgg/issues/13
metric: test cross entropy, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

# Training settings
parser = argparse.ArgumentParser(description="digits")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()
torch.manual_seed(args.seed)

X, Y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8)
X = (X - X.mean()) / X.std()
Y = torch.tensor(Y)
perm = torch.randperm(len(X))
train_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(X[perm[:1400]], Y[perm[:1400]]), batch_size=32, shuffle=True
)
test_loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X[perm[1400:]], Y[perm[1400:]]), batch_size=128)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=3, padding=1)
        self.fc1 = nn.Linear(80, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = x.view(-1, 80)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return x


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)


def train(epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % 20 == 0:
            print("Train Epoch: {} [{}/{}]\tLoss: {:.6f}".format(epoch, batch_idx * len(data), 1400, loss.item()))


def test():
    model.eval()
    test_loss, correct, n = 0, 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            test_loss += F.cross_entropy(output, target, reduction="sum").item()
            correct += (output.argmax(1) == target).sum().item()
            n += len(data)
    print("\nTest set: Accuracy: {}/{}".format(correct, n))
    return test_loss / n


for epoch in range(1, args.epochs + 1):
    train(epoch)
    loss = test()
print("metric: {:.4f}".format(loss))
