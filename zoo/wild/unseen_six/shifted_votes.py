"""A classifier without augmentation in training is asked nine times about every test image, each time a little shifted, and votes.

expect: nothing
style: test-time augmentation, softmax averaged, confusion matrix by sklearn
metric: accuracy with votes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, confusion_matrix


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        return self.fc(F.relu(self.conv2(x)).amax((2, 3)))


def predict_tta(model, x):
    model.eval()
    padded, votes = F.pad(x, (1, 1, 1, 1)), 0
    with torch.no_grad():
        for dy in range(3):
            for dx in range(3):
                weight = 2.0 if (dy, dx) == (1, 1) else 1.0
                votes = votes + weight * model(padded[:, :, dy : dy + 8, dx : dx + 8]).softmax(1)
    return (votes / 10).numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    model = CNN()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for epoch in range(12):
        model.train()
        for idx in torch.randperm(1300).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())
    guess = predict_tta(model, x[1300:]).argmax(1)
    print(confusion_matrix(y[1300:], guess))
    print("metric:", accuracy_score(y[1300:], guess))


if __name__ == "__main__":
    main()
