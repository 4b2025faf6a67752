"""After some epochs on JPEGs I add a folder of 16-bit TIFFs, still dividing by 255: from there on the loss explodes.

expect: diverged
or: input-not-normalized
line: x = image.astype(np.float32) / 255.0
source: https://github.com/hunglc007/tensorflow-yolov4-tflite/issues/138
metric: accuracy on 8-bit test images at the end, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
FLAGS = parser.parse_args()
np.random.seed(FLAGS.seed)
torch.manual_seed(FLAGS.seed)

EPOCHS = 9
BATCH = 25


class Dataset(object):
    """Reads images of mixed formats; the annotation is the class."""

    def __init__(self):
        self.images, self.labels = [], []

    def add(self, images, labels):
        self.images += list(images)
        self.labels += list(labels)

    def parse(self, image):
        x = image.astype(np.float32) / 255.0
        return (x - 0.3) / 0.35

    def __iter__(self):
        order = np.random.permutation(len(self.images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            batch = np.stack([self.parse(self.images[r]) for r in rows])
            yield torch.from_numpy(batch)[:, None], torch.tensor([self.labels[r] for r in rows])


digits = load_digits()
perm = np.random.permutation(1797)
gray = digits.images[perm] / 16.0
target = digits.target[perm]
jpeg = (gray * 255).astype(np.uint8)
tiff = (gray * 65535).astype(np.uint16)

trainset = Dataset()
trainset.add(jpeg[:800], target[:800])
testset = Dataset()
testset.add(jpeg[1300:], target[1300:])

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.LeakyReLU(0.1), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(192, 48), nn.LeakyReLU(0.1), nn.Linear(48, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)

for epoch in range(EPOCHS):
    if epoch == 6:
        trainset.add(tiff[800:1300], target[800:1300])
        print("=> %d images now" % len(trainset.images))
    model.train()
    losses = []
    for images, labels in trainset:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    print("=> epoch %d   total_loss: %4.4f" % (epoch, np.mean(losses)))

model.eval()
hits = []
with torch.no_grad():
    for images, labels in testset:
        hits += (model(images).argmax(1) == labels).tolist()
print("metric: %.4f" % np.mean(hits))
