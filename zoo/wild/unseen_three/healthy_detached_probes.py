"""Linear probes on every detached layer of a net while it trains: they watch and must not steer.

expect: nothing
style: invites 'no gradient' and 'detached branch': each probe has its own optimizer and gets h.detach(), its loss is added up with the others but never reaches the net
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)


class ProbedMLP(nn.Module):
    def __init__(self, sizes=(64, 64, 48, 32), n_out=10):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Linear(sizes[-1], n_out)
        self.probes = nn.ModuleList(nn.Linear(s, n_out) for s in sizes)

    def forward(self, x):
        probe_logits = [self.probes[0](x)]
        for layer, probe in zip(self.layers, self.probes[1:]):
            x = F.relu(layer(x))
            probe_logits.append(probe(x.detach()))
        return self.head(x), probe_logits


X, y = load_digits(return_X_y=True)
X = torch.tensor((X - 4.88) / 6.02, dtype=torch.float32)
dataset = TensorDataset(X, torch.tensor(y))
train_set, test_set = random_split(dataset, [1437, 360])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=360)

model = ProbedMLP()
body = [*model.layers.parameters(), *model.head.parameters()]
optimizer = torch.optim.SGD(body, lr=0.03, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
probe_optimizer = torch.optim.Adam(model.probes.parameters(), lr=3e-3)

for epoch in range(10):
    model.train()
    for xb, yb in train_loader:
        logits, probe_logits = model(xb)
        main_loss = F.cross_entropy(logits, yb)
        probe_loss = sum(F.cross_entropy(p, yb) for p in probe_logits)
        optimizer.zero_grad()
        probe_optimizer.zero_grad()
        (main_loss + probe_loss).backward()
        optimizer.step()
        probe_optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        xb, yb = next(iter(test_loader))
        logits, probe_logits = model(xb)
        accs = [(p.argmax(1) == yb).float().mean().item() for p in probe_logits]
        acc = (logits.argmax(1) == yb).float().mean().item()
    if epoch % 2 == 1:
        print("epoch %d main %.4f head %.4f probes %s" % (epoch + 1, main_loss.item(), acc, " ".join("%.3f" % a for a in accs)))

print("metric: %.4f" % acc)
