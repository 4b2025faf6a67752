"""Forty-glyph classifier that ends in a softmax and is trained with CrossEntropyLoss, which applies its own; the gradient was faint and most glyphs were never told apart.

expect: softmax-before-cross-entropy
or: output-misfits-loss
line: nn.Softmax(dim=1)
source: https://github.com/NaJaeMin92/pytorch-DANN/issues/7
metric: test accuracy, higher is better
"""
import argparse

import torch
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self):
        super(Classifier, self).__init__()
        self.classifier = nn.Sequential(
            nn.Linear(in_features=7 * 7, out_features=100),
            nn.ReLU(),
            nn.Linear(in_features=100, out_features=100),
            nn.ReLU(),
            nn.Linear(in_features=100, out_features=40),
            nn.Softmax(dim=1),
        )

    def forward(self, x):
        x = x.view(x.size(0), -1)
        x = self.classifier(x)
        return x


def glyphs(n, strokes):
    label = torch.randint(0, 40, (n,))
    img = strokes[label] + 0.6 * torch.randn(n, 7, 7)
    return img, label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    strokes = (torch.rand(40, 7, 7) > 0.6).float()
    train_img, train_label = glyphs(4000, strokes)
    test_img, test_label = glyphs(1000, strokes)

    model = Classifier()
    classifier_criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    for epoch in range(12):
        perm = torch.randperm(4000)
        for batch_idx, idx in enumerate(perm.split(100)):
            pred = model(train_img[idx])
            loss = classifier_criterion(pred, train_label[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print('Epoch: [{}/12] Loss: {:.4f}'.format(epoch + 1, loss.item()))

    with torch.no_grad():
        correct = (model(test_img).argmax(dim=1) == test_label).sum().item()
    print('metric: {:.4f}'.format(correct / 1000))


if __name__ == '__main__':
    main()
