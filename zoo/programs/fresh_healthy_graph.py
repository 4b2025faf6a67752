"""A graph network on one graph: the same full batch in every step, few labels.

expect: nothing
half: fresh
net: graph
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=16, lr=0.01, steps=120)
nodes, classes = 200, 4
label = torch.randint(classes, (nodes,))
near = (torch.rand(nodes, nodes) < torch.where(label[:, None] == label[None], 0.1, 0.01)).float()
near = ((near + near.T + torch.eye(nodes)) > 0).float()
scale = near.sum(1).rsqrt()
adjacency = scale[:, None] * near * scale[None]
x = nn.functional.one_hot(label, classes).float() + torch.randn(nodes, classes)
known = torch.rand(nodes) < 0.2


class GCN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w1 = nn.Linear(classes, width, bias=False)
        self.w2 = nn.Linear(width, classes, bias=False)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, a):
        h = torch.relu(a @ self.w1(self.drop(x)))
        return a @ self.w2(self.drop(h))


model = GCN(args.width)
opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
for epoch in range(args.steps):
    model.train()
    opt.zero_grad()
    out = model(x, adjacency)
    loss = nn.functional.cross_entropy(out[known], label[known])
    loss.backward()
    opt.step()
    if epoch % 20 == 0:
        model.eval()
        with torch.no_grad():
            right = (model(x, adjacency).argmax(1) == label)[~known].float().mean()
        print(epoch, loss.item(), right.item())
