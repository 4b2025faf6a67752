"""A stacked LSTM whose cells I kept in a Python list: only the embedding and the last layer ever learned.

expect: unregistered-layers
or: optimizer-misses-parameters
line: self.lstms.append(nn.LSTMCell(
source: https://github.com/ikostrikov/pytorch-meta-optimizer/issues/11
metric: test accuracy of the order of two tokens, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--hidden_size", type=int, default=24)
parser.add_argument("--num_layers", type=int, default=2)
parser.add_argument("--max_epoch", type=int, default=10)
args = parser.parse_args()
torch.manual_seed(args.seed)


class SequenceModel(nn.Module):
    def __init__(self, vocab_size, hidden_size, num_layers):
        super(SequenceModel, self).__init__()
        self.hidden_size = hidden_size
        self.embed = nn.Embedding(vocab_size, 8)
        self.lstms = []
        for i in range(num_layers):
            self.lstms.append(nn.LSTMCell(8 if i == 0 else hidden_size, hidden_size))
        self.linear = nn.Linear(hidden_size, 2)

    def forward(self, tokens):
        x = self.embed(tokens)
        hx = [x.new_zeros(x.size(0), self.hidden_size) for _ in self.lstms]
        cx = [x.new_zeros(x.size(0), self.hidden_size) for _ in self.lstms]
        for t in range(x.size(1)):
            h = x[:, t]
            for i in range(len(self.lstms)):
                hx[i], cx[i] = self.lstms[i](h, (hx[i], cx[i]))
                h = hx[i]
        return self.linear(h)


def make_data(n, length=12, vocab_size=16):
    tokens = torch.randint(2, vocab_size, (n, length))
    order = torch.rand(n, length).argsort(1)[:, :2]
    tokens.scatter_(1, order, torch.tensor([[0, 1]]).expand(n, 2))
    return tokens, (order[:, 0] < order[:, 1]).long()


train_x, train_y = make_data(1500)
test_x, test_y = make_data(500)

model = SequenceModel(16, args.hidden_size, args.num_layers)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(args.max_epoch):
    total = 0.0
    for index in torch.randperm(len(train_x)).split(50):
        loss = F.cross_entropy(model(train_x[index]), train_y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    print("Epoch: {}, loss {:.4f}".format(epoch, total / len(train_x)))

with torch.no_grad():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
print("metric: {:.4f}".format(accuracy))
