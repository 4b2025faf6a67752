"""Two-layer GCN, transductive: the whole graph in every step, loss on the few labelled nodes only.

expect: nothing
style: the pygcn manner: full batch on purpose, masks, outputs depend on the neighbours on purpose, log_softmax + nll_loss
"""
import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--weight_decay", type=float, default=5e-4)
parser.add_argument("--hidden", type=int, default=16)
parser.add_argument("--dropout", type=float, default=0.5)
args = parser.parse_args()
np.random.seed(args.seed)
torch.manual_seed(args.seed)


def load_data(n=1500, classes=5, words=300):
    """A citation-like stochastic block model with noisy bags of words."""
    labels = np.random.randint(0, classes, n)
    same = labels[:, None] == labels[None, :]
    upper = np.triu(np.random.rand(n, n) < np.where(same, 0.016, 0.0012), 1)
    adj = (upper | upper.T).astype(np.float32) + np.eye(n, dtype=np.float32)
    topic = np.random.rand(classes, words) < 0.15
    p = np.where(topic[labels], 0.06, 0.02)
    x = (np.random.rand(n, words) < p).astype(np.float32)
    x /= np.maximum(x.sum(1, keepdims=True), 1)  # rows sum to one
    d = adj.sum(1) ** -0.5
    adj = torch.tensor(d[:, None] * adj * d[None, :]).to_sparse_coo().coalesce()
    order = np.random.permutation(n)
    idx = [torch.tensor(i) for i in (order[:150], order[150:450], order[450:])]
    return adj, torch.tensor(x), torch.tensor(labels), *idx


class GraphConvolution(Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.empty(in_features, out_features))
        self.bias = Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


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


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean().item()


adj, features, labels, idx_train, idx_val, idx_test = load_data()
model = GCN(features.shape[1], args.hidden, int(labels.max()) + 1, args.dropout)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)

for epoch in range(args.epochs):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    if epoch % 20 == 0:
        model.eval()
        with torch.no_grad():
            output = model(features, adj)
        print("Epoch: {:04d} loss_train: {:.4f} loss_val: {:.4f} acc_val: {:.4f}".format(
            epoch + 1, loss_train.item(), F.nll_loss(output[idx_val], labels[idx_val]).item(),
            accuracy(output[idx_val], labels[idx_val])))

model.eval()
with torch.no_grad():
    output = model(features, adj)
print("metric: {:.4f}".format(accuracy(output[idx_test], labels[idx_test])))
