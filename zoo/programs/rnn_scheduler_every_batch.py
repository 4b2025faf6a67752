"""The learning rate was meant to shrink every epoch; the scheduler is stepped every batch.

expect: scheduler-collapse
half: second
"""

import torch
from common import arguments, loader, waves
from torch import nn

args = arguments(width=32, lr=5e-3, samples=700)


class Listener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.LSTM(1, width, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


model = Listener(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7)
criterion = nn.CrossEntropyLoss()
data = loader(*waves(args.samples))
for epoch in range(8):
    for x, y in data:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
