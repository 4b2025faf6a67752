"""A binary classifier that ends in a sigmoid, with the loss that wants logits.

expect: softmax-before-cross-entropy
half: fresh
net: mlp
"""

import torch
import torch.nn.functional as F
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=32, lr=0.01, samples=800)
x, y = blobs(args.samples, classes=2, features=12, spread=2.0)
y = y.float()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, args.width)
        self.fc2 = nn.Linear(args.width, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc2(F.relu(self.fc1(x)))).squeeze(1)


model = Classifier()
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        loss = criterion(model(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
