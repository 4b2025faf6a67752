# Early stopping on a validation loss, with the best weights put back.
import copy

import torch
from torch import nn

from utils import blobs, checksum

torch.manual_seed(7)
x, y = blobs(200)
train_x, train_y, valid_x, valid_y = x[:120], y[:120], x[120:], y[120:]
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
best, best_state, best_model, patience = float("inf"), None, None, 0

for epoch in range(40):
    model.train()
    order = torch.randperm(len(train_x))
    for rows in order.split(40):
        optimizer.zero_grad()
        criterion(model(train_x[rows]), train_y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        valid = criterion(model(valid_x), valid_y).item()
    print(f"epoch {epoch}: validation {valid:.6f}")
    if valid < best - 1e-4:
        best, patience = valid, 0
        best_state = {key: value.clone() for key, value in model.state_dict().items()}
        best_model = copy.deepcopy(model)
    else:
        patience += 1
        if patience == 3:
            print(f"early stopping at epoch {epoch}, best {best:.6f}")
            break

model.load_state_dict(best_state)
assert checksum(model) == checksum(best_model)
print("weights", checksum(model))
