"""The prediction script builds its pictures with the pipeline of training: cropped, flipped and blurred at random.

expect: random-evaluation
line: test_pipeline = train_pipeline
source: https://github.com/Fafa-DL/Awesome-Backbones/issues/97
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

cfg = dict(batch=48, epochs=14, lr=3e-3)


def random_shift(x):
    dy, dx = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, (dy, dx), (-2, -1))


def random_erase(x):
    x = x.clone()
    r, c = torch.randint(0, 5, (2,)).tolist()
    x[..., r : r + 3, c : c + 3] = 0
    return x


def random_contrast(x):
    return x * (0.5 + torch.rand(1)) + 0.2 * torch.randn_like(x)


def normalize(x):
    return (x - 0.3) / 0.37


train_pipeline = [random_shift, random_erase, random_contrast, normalize]
test_pipeline = train_pipeline


def compose(pipeline, images):
    out = []
    for image in images:
        for step in pipeline:
            image = step(image)
        out.append(image)
    return torch.stack(out)


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(24 * 16, 10),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    d = load_digits()
    x, y = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(d.target)
    p = torch.randperm(len(x))
    x, y = x[p], y[p]
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        model.train()
        for i in torch.randperm(1000).split(cfg["batch"]):
            loss = nn.functional.cross_entropy(model(compose(train_pipeline, x[i])), y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(compose(test_pipeline, x[1000:])).argmax(1) == y[1000:]).float().mean().item()
        print("epoch %d loss %.4f val %.4f" % (epoch, loss.item(), acc))
    print("metric: %.4f" % acc)


if __name__ == "__main__":
    main()
