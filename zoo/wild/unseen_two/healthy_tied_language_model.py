"""A word-level LSTM whose output layer is its embedding; the hidden state is carried, detached, from batch to batch.

expect: nothing
metric: perplexity on the test text, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp=48, nlayers=1, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, ninp, nlayers)
        self.decoder = nn.Linear(ninp, ntoken)
        self.decoder.weight = self.encoder.weight
        self.encoder.weight.data.uniform_(-0.1, 0.1)
        self.decoder.bias.data.zero_()

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        return torch.zeros(1, bsz, 48), torch.zeros(1, bsz, 48)


def corpus(n):
    """A Markov chain over 30 words: each has four likely successors."""
    successor = torch.stack([torch.randperm(30)[:4] for _ in range(30)])
    words, at = [], 0
    for choice in torch.multinomial(torch.tensor([0.5, 0.3, 0.15, 0.05]), n, replacement=True).tolist():
        at = int(successor[at, choice])
        words.append(at)
    return torch.tensor(words)


def batchify(data, bsz):
    nbatch = len(data) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    return tuple(v.detach() for v in h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bptt", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    text = corpus(24000)
    train, test = batchify(text[:20000], 20), batchify(text[20000:], 10)
    model = RNNModel(30)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        model.train()
        hidden = model.init_hidden(20)
        for i in range(0, len(train) - 1, args.bptt):
            n = min(args.bptt, len(train) - 1 - i)
            hidden = repackage_hidden(hidden)
            output, hidden = model(train[i : i + n], hidden)
            loss = criterion(output, train[i + 1 : i + 1 + n].reshape(-1))
            model.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        print(f"| epoch {epoch} | loss {loss.item():5.2f} | ppl {math.exp(loss.item()):8.2f}")
    model.eval()
    with torch.no_grad():
        output, _ = model(test[:-1], model.init_hidden(10))
    print("metric:", math.exp(criterion(output, test[1:].reshape(-1)).item()))


main()
