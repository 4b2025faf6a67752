# LBFGS with a closure that is called many times a step.
import torch
from torch import nn

from utils import checksum

torch.manual_seed(25)
x = torch.linspace(-2, 2, 40)[:, None]
y = torch.sin(3 * x)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)).double()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
calls = 0
for step in range(4):

    def closure():
        global calls
        calls += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.double()), y.double())
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    print(f"{step} {loss.item():.8f} after {calls} calls")
print("weights", checksum(model))
