# One long script, everything at the top level, as in a first tutorial.
import hashlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

images = torch.rand(128, 1, 12, 12)
labels = (images.mean(dim=(1, 2, 3)) * 100).long() % 10
train_loader = DataLoader(TensorDataset(images[:96], labels[:96]), batch_size=16, shuffle=True)
test_loader = DataLoader(TensorDataset(images[96:], labels[96:]), batch_size=16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.conv2 = nn.Conv2d(6, 12, 3)
        self.drop = nn.Dropout(0.2)
        self.fc1 = nn.Linear(108, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(self.conv2(x))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(self.drop(x)))
        return self.fc2(x)


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(2):
    model.train()
    running = 0.0
    for batch, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(batch), target)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    correct = 0
    with torch.no_grad():
        for batch, target in test_loader:
            correct += (model(batch).argmax(1) == target).sum().item()
    print(f"epoch {epoch}: loss {running / len(train_loader):.6f}, accuracy {correct / 32:.3f}")

weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("weights", hashlib.sha256(weights).hexdigest()[:16])
