"""A character LSTM that reads one long text in order and carries its state from batch to batch.

expect: nothing
style: truncated backpropagation through time, sequential batches, detached state (looks like unshuffled data and a lost gradient)
"""

import argparse

import numpy as np
import torch
import torch.nn as nn

TEXT = (
    "it was the best of times it was the worst of times it was the age of wisdom it was the age of foolishness "
    "it was the epoch of belief it was the epoch of incredulity it was the season of light it was the season of darkness "
    "it was the spring of hope it was the winter of despair we had everything before us we had nothing before us "
) * 60


class RNNModel(nn.Module):
    def __init__(self, ntoken, nhid):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(ntoken, 24)
        self.rnn = nn.LSTM(24, nhid)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid = nhid

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return self.decoder(self.drop(output)), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(1, bsz, self.nhid), weight.new_zeros(1, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    return tuple(v.detach() for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--bptt", type=int, default=25)
args = parser.parse_args()
torch.manual_seed(args.seed)

chars = sorted(set(TEXT))
ids = torch.tensor([chars.index(c) for c in TEXT])
train_data, val_data = batchify(ids[:17000], 20), batchify(ids[17000:], 5)
model = RNNModel(len(chars), 48)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(args.epochs):
    model.train()
    hidden, total = model.init_hidden(20), []
    for i in range(0, train_data.size(0) - 1, args.bptt):
        data, targets = get_batch(train_data, i, args.bptt)
        hidden = repackage_hidden(hidden)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output.view(-1, len(chars)), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total.append(loss.item())
    print("| epoch {:3d} | loss {:5.2f} | ppl {:8.2f}".format(epoch, np.mean(total), np.exp(np.mean(total))))

model.eval()
hidden, losses = model.init_hidden(5), []
with torch.no_grad():
    for i in range(0, val_data.size(0) - 1, args.bptt):
        data, targets = get_batch(val_data, i, args.bptt)
        output, hidden = model(data, hidden)
        losses.append(criterion(output.view(-1, len(chars)), targets).item())
print("metric: {:.3f} perplexity of {} characters".format(np.exp(np.mean(losses)), len(chars)))
