"""Transfer learning: a pretrained body is frozen and kept in eval mode, only the new head learns.

expect: nothing
style: fine-tuning with requires_grad=False, optimizer of the head only, model.train() does not touch the body's batch norm (looks like frozen parts and training in eval mode)
"""

import argparse
import copy

import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class SmallResNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.conv2 = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.pool = nn.AvgPool2d(2)
        self.fc = nn.Linear(256, num_classes)

    def forward(self, x):
        x = self.conv1(x)
        x = x + self.conv2(x)
        return self.fc(self.pool(x).flatten(1))


def train_model(model, criterion, optimizer, dataloaders, num_epochs, frozen=()):
    best, best_acc = copy.deepcopy(model.state_dict()), 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            for module in frozen:
                module.eval()
            running_loss, corrects = 0.0, 0
            for inputs, labels in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                corrects += (outputs.argmax(1) == labels).sum().item()
            size = len(dataloaders[phase].dataset)
            print("{} Loss: {:.4f} Acc: {:.4f}".format(phase, running_loss / size, corrects / size))
            if phase == "val" and corrects / size > best_acc:
                best, best_acc = copy.deepcopy(model.state_dict()), corrects / size
    model.load_state_dict(best)
    return best_acc


def loaders(x, y, n):
    return {
        "train": DataLoader(TensorDataset(x[:n], y[:n]), batch_size=16, shuffle=True),
        "val": DataLoader(TensorDataset(x[n:], y[n:]), batch_size=100),
    }


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
x, y = load_digits(return_X_y=True)
order = torch.randperm(len(x))
x = (torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8)[order] - 4.9) / 6.0
y = torch.tensor(y)[order]
old, new = y < 6, y >= 6

model = SmallResNet(6)
train_model(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.02, momentum=0.9), loaders(x[old], y[old], 800), 4)

for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 4)
optimizer_conv = optim.SGD(model.fc.parameters(), lr=0.02, momentum=0.9)
acc = train_model(model, nn.CrossEntropyLoss(), optimizer_conv, loaders(x[new], y[new] - 6, 450), 5, frozen=(model.conv1, model.conv2))
print("metric: {:.4f}".format(acc))
