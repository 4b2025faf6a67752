"""A two-layer graph convolution on a graph of communities: one full batch, in which nodes mix on purpose.

expect: nothing
style: semi-supervised GCN, full-batch training with an adjacency matrix and a training mask (looks like samples mixed and a repeated batch)
"""

import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.parameter import Parameter


class GraphConvolution(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.empty(in_features, out_features))
        self.bias = Parameter(torch.zeros(out_features))
        stdv = 1.0 / math.sqrt(out_features)
        self.weight.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        return torch.spmm(adj, torch.mm(input, self.weight)) + self.bias


class GCN(torch.nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
np.random.seed(args.seed)
torch.manual_seed(args.seed)

n, classes = 300, 4
labels = np.random.randint(classes, size=n)
same = labels[:, None] == labels[None, :]
edges = np.triu(np.random.rand(n, n) < np.where(same, 0.05, 0.006), 1)
A = edges + edges.T + np.eye(n)
d = A.sum(1) ** -0.5
adj = torch.tensor(d[:, None] * A * d[None, :], dtype=torch.float32).to_sparse()
features = torch.tensor(0.5 * np.eye(classes)[labels] @ np.random.randn(classes, 16) + np.random.randn(n, 16), dtype=torch.float32)
labels = torch.tensor(labels)
idx_train, idx_val, idx_test = torch.arange(60), torch.arange(60, 120), torch.arange(120, n)

model = GCN(16, 24, classes, 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean().item()


for epoch in range(200):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    if epoch % 40 == 0:
        model.eval()
        with torch.no_grad():
            output = model(features, adj)
        print("Epoch: {:04d}".format(epoch + 1), "loss_train: {:.4f}".format(loss_train.item()), "acc_val: {:.4f}".format(accuracy(output[idx_val], labels[idx_val])))

model.eval()
with torch.no_grad():
    print("metric: {:.4f}".format(accuracy(model(features, adj)[idx_test], labels[idx_test])))
