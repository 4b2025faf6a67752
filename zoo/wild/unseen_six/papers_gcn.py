"""A graph convolution by hand on a made-up net of papers, of which only forty have labels: full-batch training, early overfit, dropout.

expect: nothing
style: sparse adjacency, mask of training nodes, weight decay on the first layer only
metric: accuracy on the other nodes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConvolution(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(i, o))
        self.bias = nn.Parameter(torch.zeros(o))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(features, hidden), GraphConvolution(hidden, classes)

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), 0.5, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def papers(n=600, classes=4, words=80):
    y = torch.randint(classes, (n,))
    same = y[:, None] == y[None]
    links = torch.rand(n, n) < torch.where(same, 0.03, 0.004)
    links = (links | links.T).float()
    links.fill_diagonal_(1)
    scale = links.sum(1).rsqrt()
    adj = (scale[:, None] * links * scale[None]).to_sparse()
    likely = torch.rand(classes, words) < 0.2
    x = (torch.rand(n, words) < torch.where(likely[y], 0.15, 0.06)).float()
    return x / x.sum(1, keepdim=True).clamp(min=1), adj, y


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    features, adj, labels = papers()
    idx_train = torch.cat([(labels == c).nonzero().view(-1)[:10] for c in range(4)])
    rest = torch.ones(len(labels), dtype=torch.bool)
    rest[idx_train] = False
    model = GCN(features.size(1), 32, 4)
    optimizer = torch.optim.Adam([{"params": model.gc1.parameters(), "weight_decay": 5e-4}, {"params": model.gc2.parameters()}], lr=0.02)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss = F.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        if epoch % 40 == 0:
            print("Epoch: {:04d} loss_train: {:.4f}".format(epoch, loss.item()))
    model.eval()
    with torch.no_grad():
        print("metric:", (model(features, adj).argmax(1) == labels)[rest].float().mean().item())
