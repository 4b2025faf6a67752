"""GRU text classifier with its settings on the command line; the rate of 1.0 was the default from the days of plain SGD, then -optim adam was made the default and nobody lowered it.

expect: learning-rate-too-high
line: "-learning_rate", type=float, default=1.0
source: https://github.com/OpenNMT/OpenNMT-py/issues/805
metric: test accuracy, higher is better
"""
import argparse

import torch
import torch.nn as nn


def train_opts():
    parser = argparse.ArgumentParser(description="train.py")
    group = parser.add_argument_group("Model")
    group.add_argument("-word_vec_size", type=int, default=20)
    group.add_argument("-rnn_size", type=int, default=32)
    group = parser.add_argument_group("Optimization")
    group.add_argument("-optim", default="adam", choices=["sgd", "adagrad", "adam"])
    group.add_argument("-learning_rate", type=float, default=1.0)
    group.add_argument("-batch_size", type=int, default=32)
    group.add_argument("-train_steps", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def build_optim(opt, params):
    if opt.optim == "sgd":
        return torch.optim.SGD(params, lr=opt.learning_rate)
    if opt.optim == "adagrad":
        return torch.optim.Adagrad(params, lr=opt.learning_rate)
    return torch.optim.Adam(params, lr=opt.learning_rate)


class Model(nn.Module):
    def __init__(self, opt, vocab, classes):
        super().__init__()
        self.emb = nn.Embedding(vocab, opt.word_vec_size)
        self.rnn = nn.GRU(opt.word_vec_size, opt.rnn_size, batch_first=True)
        self.out = nn.Linear(opt.rnn_size, classes)

    def forward(self, src):
        _, h = self.rnn(self.emb(src))
        return self.out(h[-1])


class Corpus:
    """Sentences of 10 words, about four of them typical of the class."""

    def __init__(self, vocab=100, classes=4):
        self.vocab, self.classes = vocab, classes

    def batch(self, n):
        tgt = torch.randint(0, self.classes, (n,))
        src = torch.randint(0, self.vocab, (n, 10))
        typical = torch.randint(0, self.vocab // self.classes, (n, 10)) * self.classes + tgt[:, None]
        return torch.where(torch.rand(n, 10) < 0.4, typical, src), tgt


def main():
    opt = train_opts()
    torch.manual_seed(opt.seed)
    corpus = Corpus()
    model = Model(opt, corpus.vocab, corpus.classes)
    optim = build_optim(opt, model.parameters())
    criterion = nn.CrossEntropyLoss()
    for step in range(1, opt.train_steps + 1):
        src, tgt = corpus.batch(opt.batch_size)
        loss = criterion(model(src), tgt)
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optim.step()
        if step % 60 == 0:
            print("Step %d/%d; ppl: %7.2f" % (step, opt.train_steps, loss.exp().item()))
    with torch.no_grad():
        src, tgt = corpus.batch(1000)
        acc = (model(src).argmax(1) == tgt).float().mean().item()
    print("metric: %.4f" % acc)


if __name__ == "__main__":
    main()
