"""A stateful GRU reads eight long texts in parallel, piece by piece, and keeps its detached state between pieces.

expect: nothing
style: invites 'unshuffled data' and 'detached state': truncated backpropagation needs the pieces in order, and the state is carried but cut on purpose
"""
import argparse
import math
import random

import torch
import torch.nn as nn

WORDS = "the sea was calm and an old ship came in with salt fish oil rope tar sails from far away islands".split()


def write_text(n_words, rng):
    """A Markov chain over words: each word has three successors."""
    follow = {w: random.Random(i).sample(WORDS, 3) for i, w in enumerate(WORDS)}
    w, out = rng.choice(WORDS), []
    for _ in range(n_words):
        out.append(w)
        w = rng.choices(follow[w], weights=[6, 3, 1])[0]
    return " ".join(out)


def batchify(ids, bsz):
    n = len(ids) // bsz
    return torch.tensor(ids[:n * bsz]).view(bsz, n).t().contiguous()       # [time, batch]


def get_batch(source, i, bptt):
    seq = min(bptt, len(source) - 1 - i)
    return source[i:i + seq], source[i + 1:i + 1 + seq].reshape(-1)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp=24, nhid=64):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.GRU(ninp, nhid)
        self.decoder = nn.Linear(nhid, ntoken)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        return torch.zeros(1, bsz, self.rnn.hidden_size)


def repackage_hidden(h):
    return h.detach()


@torch.no_grad()
def evaluate(model, source, criterion, bptt):
    model.eval()
    hidden, total = model.init_hidden(source.size(1)), 0.0
    for i in range(0, len(source) - 1, bptt):
        data, targets = get_batch(source, i, bptt)
        output, hidden = model(data, hidden)
        total += len(data) * criterion(output, targets).item()
    return total / (len(source) - 1)


def main(args):
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    text, val_text = write_text(6000, rng), write_text(1500, rng)
    vocab = {c: i for i, c in enumerate(sorted(set(text)))}
    train_data = batchify([vocab[c] for c in text], 8)
    val_data = batchify([vocab[c] for c in val_text], 8)
    model, criterion = RNNModel(len(vocab)), nn.CrossEntropyLoss()
    lr = args.lr
    best = None
    for epoch in range(1, args.epochs + 1):
        model.train()
        hidden, total = model.init_hidden(8), 0.0
        for i in range(0, len(train_data) - 1, args.bptt):
            data, targets = get_batch(train_data, i, args.bptt)
            hidden = repackage_hidden(hidden)
            model.zero_grad()
            output, hidden = model(data, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            total += loss.item() * len(data)
        val = evaluate(model, val_data, criterion, args.bptt)
        print("| epoch %d | lr %.2f | train %.3f | valid loss %.3f | valid ppl %.2f" % (
            epoch, lr, total / (len(train_data) - 1), val, math.exp(val)))
        if best is None or val < best:
            best = val
        else:
            lr /= 4.0
    print("metric: %.4f" % math.exp(best))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bptt", type=int, default=32)
    parser.add_argument("--lr", type=float, default=4.0)
    parser.add_argument("--clip", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=8)
    main(parser.parse_args())
