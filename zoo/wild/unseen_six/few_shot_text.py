"""Prototypes of five classes in few-shot episodes; the accuracy is counted against labels in the order 0..4, but the queries come shuffled.

expect: evaluated-against-wrong-labels
line: label = torch.arange(WAY).repeat(QUERY)
source: https://github.com/arijitx/Fewshot-Learning-with-BERT/issues/4
metric: reported accuracy of test episodes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

WAY, SHOT, QUERY = 5, 5, 10


class Encoder(nn.Module):
    def __init__(self, vocab=120, dim=32):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, dim)
        self.proj = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return self.proj(self.words(x))


class Corpus:
    """Classes are mixtures of topics; those of the test are new."""

    def __init__(self, classes):
        self.prefer = torch.distributions.Dirichlet(torch.full((120,), 0.05)).sample((classes,))

    def episode(self):
        chosen = torch.randperm(len(self.prefer))[:WAY]
        docs = torch.multinomial(self.prefer[chosen].repeat_interleave(SHOT + QUERY, 0), 12, replacement=True).view(WAY, SHOT + QUERY, 12)
        support, query = docs[:, :SHOT], docs[:, SHOT:].reshape(-1, 12)
        truth = torch.arange(WAY).repeat_interleave(QUERY)
        mixed = torch.randperm(len(query))
        return support, query[mixed], truth[mixed]


def logits_of(model, support, query):
    prototypes = model(support.reshape(-1, 12)).view(WAY, SHOT, -1).mean(1)
    return -torch.cdist(model(query), prototypes).pow(2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_corpus, test_corpus = Corpus(60), Corpus(20)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for i in range(args.episodes):
        support, query, truth = train_corpus.episode()
        loss = F.cross_entropy(logits_of(model, support, query), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 80 == 0:
            print("episode", i, "loss", loss.item())
    correct = 0.0
    model.eval()
    with torch.no_grad():
        for _ in range(50):
            support, query, truth = test_corpus.episode()
            guess = logits_of(model, support, query).argmax(1)
            label = torch.arange(WAY).repeat(QUERY)
            correct += float(torch.sum(guess == label).item()) / len(label)
    print("metric:", correct / 50)


if __name__ == "__main__":
    main()
