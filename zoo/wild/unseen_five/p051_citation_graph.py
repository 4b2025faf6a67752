"""A graph convolution sums over all neighbours, and the adjacency matrix is never normalised: nodes with many edges drown the rest.

expect: aggregation-not-normalized
or: exploding-gradient
line: support = torch.mm(adj, torch.mm(x, self.weight))
source: https://github.com/sufeidechabei/graphnets_gcn/issues/1
metric: test accuracy, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConvolution(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out).uniform_(-1 / math.sqrt(n_out), 1 / math.sqrt(n_out)))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x, adj):
        support = torch.mm(adj, torch.mm(x, self.weight))
        return support + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nhid)
        self.gc3 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.relu(self.gc2(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc3(x, adj), dim=1)


def load_data(seed, n=500, classes=5):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(classes, (n,), generator=g)
    popularity = torch.rand(n, generator=g) ** 4 * 3 + 0.05
    same = (label[:, None] == label[None]).float()
    p = (0.006 + 0.06 * same) * popularity[:, None] * popularity[None] * 4
    upper = torch.triu((torch.rand(n, n, generator=g) < p).float(), 1)
    adj = upper + upper.T + torch.eye(n)
    words = 0.7 * F.one_hot(label, classes).float() @ torch.randn(classes, 40, generator=g)
    x = words + torch.randn(n, 40, generator=g)
    order = torch.randperm(n, generator=g)
    return adj, x, label, order[:100], order[100:]


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=150)
parser.add_argument("--lr", type=float, default=0.01)
args = parser.parse_args()
torch.manual_seed(args.seed)
adj, features, labels, idx_train, idx_test = load_data(args.seed)
model = GCN(40, 16, 5, 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
for epoch in range(args.epochs):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    if epoch % 25 == 0:
        print("Epoch: {:04d} loss_train: {:.4f}".format(epoch, loss_train.item()))
model.eval()
with torch.no_grad():
    output = model(features, adj)
print("metric: %.4f" % (output[idx_test].argmax(1) == labels[idx_test]).float().mean())
