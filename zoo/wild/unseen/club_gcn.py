"""Two-layer graph convolution on a random community graph with ten labelled nodes per community.

expect: nothing
style: transductive: one graph, every step sees the whole of it, each node's output depends on its neighbours, and only a handful of nodes is in the loss
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout=0.5):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def block_graph(n=400, k=4, p_in=0.1, p_out=0.01):
    labels = torch.arange(n) % k
    same = labels[:, None] == labels[None]
    prob = torch.where(same, p_in, p_out)
    upper = (torch.rand(n, n) < prob).triu(1)
    adj = (upper | upper.T).float() + torch.eye(n)
    d = adj.sum(1).rsqrt()
    adj = (d[:, None] * adj * d[None]).to_sparse()
    features = torch.randn(n, 16) + 0.5 * F.one_hot(labels, 16)
    return features, labels, adj


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--weight_decay", type=float, default=5e-4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    features, labels, adj = block_graph()
    perm = torch.randperm(len(labels))
    idx_train = torch.cat([perm[labels[perm] == c][:10] for c in range(4)])
    mask = torch.ones(len(labels), dtype=torch.bool)
    mask[idx_train] = False

    model = GCN(16, 24, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=args.weight_decay)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        if epoch % 50 == 49:
            print(f"Epoch: {epoch + 1:04d} loss_train: {loss_train.item():.4f}")
    model.eval()
    with torch.no_grad():
        pred = model(features, adj).argmax(1)
    acc = (pred == labels)[mask].float().mean().item()
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
