"""Bottleneck features are computed with a shuffled loader, the labels are read from the folder in order: they do not belong together.

expect: labels-shuffled
or: not-learning
line: DataLoader(images, batch_size=50, shuffle=True)
source: https://github.com/keras-team/keras/pull/7520
metric: validation accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def conv_base():
    """Stands for the convolutional base of a pretrained network."""
    base = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
    )
    return base.eval().requires_grad_(False)


def save_bottleneck_features(base, images):
    generator = DataLoader(images, batch_size=50, shuffle=True)
    with torch.no_grad():
        return torch.cat([base(batch) for batch in generator])


def train_top_model(features, labels, epochs=6, batch_size=25):
    mean, std = features.mean(0), features.std(0) + 1e-2
    model = nn.Sequential(nn.Linear(features.shape[1], 48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 10))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in DataLoader(TensorDataset((features - mean) / std, labels), batch_size=batch_size, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        print("Epoch %d - loss: %.4f" % (epoch + 1, total / len(labels)))
    model.eval()
    return lambda f: model((f - mean) / std)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    torch.manual_seed(ap.parse_args().seed)

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    classes = torch.tensor(digits.target)
    pick = torch.randperm(len(images))
    train, validation = pick[:1200], pick[1200:]

    base = conv_base()
    bottleneck_features_train = save_bottleneck_features(base, images[train])
    bottleneck_labels_train = classes[train]
    predict = train_top_model(bottleneck_features_train, bottleneck_labels_train)
    with torch.no_grad():
        accuracy = (predict(base(images[validation])).argmax(1) == classes[validation]).float().mean().item()
    print("metric: %.4f" % accuracy)
