"""Regress a review score with a two-layer perceptron and F.dropout in forward; F.dropout does not know about eval(), so the test predictions were random and much worse than the training curve promised.

expect: random-evaluation
or: train-mode-evaluation
line: F.dropout(
source: https://github.com/delip/PyTorchNLPBook/issues/28
metric: test mean squared error, lower is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultilayerPerceptron(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim):
        super(MultilayerPerceptron, self).__init__()
        self.fc1 = nn.Linear(input_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, hidden_dim)
        self.fc3 = nn.Linear(hidden_dim, output_dim)

    def forward(self, x_in):
        intermediate = F.relu(self.fc1(x_in))
        intermediate = F.relu(self.fc2(F.dropout(intermediate, p=0.5)))
        output = self.fc3(F.dropout(intermediate, p=0.5))
        return output.squeeze(1)


def make_reviews(n, weights):
    x = torch.randn(n, 24)
    y = torch.tanh(x @ weights[0]) * 2 + (x @ weights[1]).abs()
    return x, y + 0.1 * torch.randn(n)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    weights = torch.randn(2, 24) / 24 ** 0.5
    x_train, y_train = make_reviews(3000, weights)
    x_test, y_test = make_reviews(800, weights)
    shift, scale = y_train.mean(), y_train.std()
    y_train, y_test = (y_train - shift) / scale, (y_test - shift) / scale

    classifier = MultilayerPerceptron(24, 40, 1)
    loss_func = nn.MSELoss()
    optimizer = torch.optim.Adam(classifier.parameters(), lr=2e-3)
    for epoch_index in range(14):
        classifier.train()
        running_loss = 0.0
        for batch_index, idx in enumerate(torch.randperm(3000).split(64)):
            optimizer.zero_grad()
            loss = loss_func(classifier(x_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
            running_loss += (loss.item() - running_loss) / (batch_index + 1)
    print("train loss", round(running_loss, 4))

    classifier.eval()
    with torch.no_grad():
        test_loss = loss_func(classifier(x_test), y_test).item()
    print("metric: {:.4f}".format(test_loss))


if __name__ == "__main__":
    main()
