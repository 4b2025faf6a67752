"""A ReLU network for the stars of a review with Adam at 0.4: soon the second layer is dead and every review has the same stars.

expect: dead-units
or: learning-rate-too-high
line: lr=0.4
source: https://github.com/dangitstam/topic-rnn/pull/9
metric: root mean squared error of the stars on test reviews, lower is better
"""

import argparse

import torch
from torch import nn


class StarNet(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.infer = nn.Sequential(nn.Linear(vocab_size, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.stars = nn.Linear(32, 1)

    def forward(self, stopless_bow):
        return self.stars(self.infer(stopless_bow)).squeeze(-1)


def reviews(n, topic_words):
    """60 words each; what is written depends on the stars."""
    stars = torch.randint(1, 6, (n,))
    words = torch.multinomial(topic_words[stars - 1], 60, replacement=True)
    bow = torch.zeros(n, topic_words.shape[1]).scatter_add_(1, words, torch.ones_like(words, dtype=torch.float))
    return bow, stars.float()


def main(seed):
    torch.manual_seed(seed)
    topic_words = torch.softmax(torch.randn(5, 80), -1)
    train_bow, train_stars = reviews(1600, topic_words)
    test_bow, test_stars = reviews(400, topic_words)
    mean, std = train_bow.mean(0), train_bow.std(0)
    train_bow, test_bow = (train_bow - mean) / std, (test_bow - mean) / std

    model = StarNet(80)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.4)
    for epoch in range(8):
        total = 0.0
        for rows in torch.randperm(1600).split(40):
            loss = nn.functional.mse_loss(model(train_bow[rows]), train_stars[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 40
        print("epoch %d: %.4f" % (epoch, total))
    with torch.no_grad():
        print("metric: %.4f" % nn.functional.mse_loss(model(test_bow), test_stars).sqrt().item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
