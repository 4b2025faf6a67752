"""The label maps are resized bilinearly: between class 0 and class 3 lie pixels that are now of class 1 and 2.

expect: labels-interpolated
line: F.interpolate(label[None, None].float(), size=(small, small), mode="bilinear"
source: https://github.com/divamgupta/image-segmentation-keras/issues/11
metric: test mean intersection over union, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES = 4


def scene(generator, size=40):
    """Large images with small objects of three kinds, told apart by their brightness in two bands."""
    image = 0.3 * torch.randn(2, size, size, generator=generator)
    label = torch.zeros(size, size, dtype=torch.long)
    look = torch.tensor([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5], [1.5, 1.5]])
    for _ in range(8):
        kind = int(torch.randint(1, CLASSES, (), generator=generator))
        h, w = torch.randint(5, 9, (2,), generator=generator).tolist()
        top, left = torch.randint(0, size - 9, (2,), generator=generator).tolist()
        label[top : top + h, left : left + w] = kind
    image = image + look[label].permute(2, 0, 1)
    return image, label


def load(image, label, small=16):
    image = F.interpolate(image[None], size=(small, small), mode="bilinear", align_corners=False)[0]
    label = F.interpolate(label[None, None].float(), size=(small, small), mode="bilinear", align_corners=False)[0, 0]
    return image, label.long()


def mean_iou(predicted, truth):
    scores = []
    for k in range(CLASSES):
        both = ((predicted == k) & (truth == k)).sum().item()
        either = ((predicted == k) | (truth == k)).sum().item()
        scores.append(both / max(either, 1))
    return sum(scores) / CLASSES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)

    images, labels = (torch.stack(c) for c in zip(*[load(*scene(g)) for _ in range(400)]))
    test = [scene(g) for _ in range(100)]

    net = nn.Sequential(
        nn.Conv2d(2, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, CLASSES, 1),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    net.train()
    for step in range(args.steps):
        pick = torch.randint(0, len(images), (16,))
        loss = F.cross_entropy(net(images[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")

    # score at the size of the output
    net.eval()
    inputs = torch.stack([F.interpolate(i[None], size=(16, 16), mode="bilinear", align_corners=False)[0] for i, _ in test])
    truth = torch.stack([F.interpolate(l[None, None].float(), size=(16, 16), mode="nearest")[0, 0].long() for _, l in test])
    with torch.no_grad():
        predicted = net(inputs).argmax(1)
    print("metric:", mean_iou(predicted, truth))


if __name__ == "__main__":
    main()
