"""Graph attention over a sparse list of edges, with a segment softmax by hand and dropout on the weights of attention.

expect: nothing
style: transductive, whole graph in a batch, loss on few labelled nodes, early stopping on the rest
metric: accuracy on test nodes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class GATLayer(nn.Module):
    def __init__(self, n_in, n_out, heads, concat=True):
        super().__init__()
        self.heads, self.n_out, self.concat = heads, n_out, concat
        self.w = nn.Linear(n_in, heads * n_out, bias=False)
        self.a_src, self.a_dst = (
            nn.Parameter(torch.empty(heads, n_out)),
            nn.Parameter(torch.empty(heads, n_out)),
        )
        self.bias = nn.Parameter(torch.zeros(heads * n_out if concat else n_out))
        for p in (self.w.weight, self.a_src, self.a_dst):
            nn.init.xavier_uniform_(p)

    def forward(self, x, edges):
        src, dst = edges
        h = self.w(F.dropout(x, 0.4, self.training)).view(-1, self.heads, self.n_out)
        e = F.leaky_relu((h * self.a_src).sum(-1)[src] + (h * self.a_dst).sum(-1)[dst], 0.2)
        e = (e - e.max()).exp()
        norm = torch.zeros(len(x), self.heads).index_add_(0, dst, e)
        alpha = F.dropout(e / (norm[dst] + 1e-9), 0.3, self.training)
        out = torch.zeros_like(h).index_add_(0, dst, alpha.unsqueeze(-1) * h[src])
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


class GAT(nn.Module):
    def __init__(self, n_in, classes):
        super().__init__()
        self.one, self.two = GATLayer(n_in, 8, 4), GATLayer(32, classes, 2, concat=False)

    def forward(self, x, edges):
        return self.two(F.elu(self.one(x, edges)), edges)


def citations(n=600, classes=4, words=64):
    y = torch.randint(classes, (n,))
    x = (torch.rand(n, words) < 0.06 + 0.12 * (torch.arange(words) % classes == y[:, None])).float()
    p = 0.002 + 0.014 * (y[:, None] == y[None])
    a = (torch.rand(n, n) < p).triu(1)
    a = a | a.T | torch.eye(n, dtype=torch.bool)
    return x / x.sum(1, keepdim=True).clamp(min=1), y, a.nonzero().T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y, edges = citations()
    order = torch.randperm(len(y))
    train, val, test = order[:80], order[80:280], order[280:]
    model = GAT(x.size(1), 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    best, best_state, waited = float("inf"), None, 0
    for epoch in range(250):
        model.train()
        loss = F.cross_entropy(model(x, edges)[train], y[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(x, edges)
            val_loss = F.cross_entropy(out[val], y[val]).item()
        if val_loss < best:
            best, waited = val_loss, 0
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            waited += 1
        if epoch % 30 == 0:
            print(
                f"GAT training: epoch={epoch} | train loss={loss.item():.3f} | val acc={(out[val].argmax(1) == y[val]).float().mean():.3f}"
            )
        if waited >= args.patience:
            break
    model.load_state_dict(best_state)
    with torch.no_grad():
        print("metric:", (model(x, edges)[test].argmax(1) == y[test]).float().mean().item())


if __name__ == "__main__":
    main()
