"""CNN lab exercise on the small digits; accuracy jumped around and ended low, since zero_grad was called once per epoch and not once per batch.

expect: missing-zero-grad
line: optimizer.zero_grad()
source: https://github.com/heartcored98/Standalone-DeepLearning/issues/11
metric: test accuracy, higher is better
"""
import sys

import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)

# ====== Data ====== #
digits = load_digits()
X = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
y = torch.tensor(digits.target)
perm = torch.randperm(len(X))
X, y = X[perm], y[perm]
trainset = TensorDataset(X[:1400], y[:1400])
testset = TensorDataset(X[1400:], y[1400:])


# ====== Model ====== #
class CNN(nn.Module):
    def __init__(self, hid=16):
        super(CNN, self).__init__()
        self.conv1 = nn.Conv2d(1, hid, 3, padding=1)
        self.conv2 = nn.Conv2d(hid, 2 * hid, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.act = nn.ReLU()
        self.fc = nn.Linear(2 * hid * 2 * 2, 10)

    def forward(self, x):
        x = self.pool(self.act(self.conv1(x)))
        x = self.pool(self.act(self.conv2(x)))
        return self.fc(x.view(x.size(0), -1))


# ====== Train / Test ====== #
def train(net, optimizer, criterion, loader):
    net.train()
    optimizer.zero_grad()

    correct, total, train_loss = 0, 0, 0.0
    for inputs, labels in loader:
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()

        train_loss += loss.item()
        correct += (outputs.argmax(1) == labels).sum().item()
        total += labels.size(0)
    return train_loss / len(loader), 100 * correct / total


def test(net, loader):
    net.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for inputs, labels in loader:
            correct += (net(inputs).argmax(1) == labels).sum().item()
            total += labels.size(0)
    return correct / total


net = CNN()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
trainloader = DataLoader(trainset, batch_size=32, shuffle=True)
testloader = DataLoader(testset, batch_size=64)

for epoch in range(6):
    loss, acc = train(net, optimizer, criterion, trainloader)
    print("Epoch {}, train loss {:.3f}, train acc {:.1f}".format(epoch, loss, acc))

print("metric: {:.4f}".format(test(net, testloader)))
