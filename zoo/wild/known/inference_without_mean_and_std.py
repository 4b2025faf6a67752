"""Training images are scaled to [0, 1] and normalised with mean and std, at inference I only scaled them.

expect: evaluation-scale
line: img = img / 255.0
source: https://github.com/jaehyunnn/ViTPose_pytorch/issues/17
metric: accuracy of the inference script on test images, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

# of the training photographs, which are bright and of little contrast
MEAN, STD = 0.764, 0.071


class Digits(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        img = self.images[index].astype(np.float32) / 255.0
        img = (img - MEAN) / STD
        return torch.from_numpy(img)[None], int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.layer2 = nn.Sequential(nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(x)))


def train_model(model, dataset, epochs):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for img, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(img), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"[epoch {epoch}] loss {total / len(loader):.4f}")


@torch.no_grad()
def inference(model, images):
    model.eval()
    img = torch.tensor(images, dtype=torch.float32)[:, None]
    img = img / 255.0
    return model(img).argmax(1).numpy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    np.random.seed(seed)
    digits = load_digits()
    photos = (180 + 3 * digits.images).astype(np.uint8)
    order = np.random.permutation(len(photos))
    train, test = order[:1300], order[1300:]
    model = Net()
    train_model(model, Digits(photos[train], digits.target[train]), epochs=6)
    predicted = inference(model, photos[test])
    print(f"metric: {(predicted == digits.target[test]).mean():.4f}")
