"""One linear layer fits 64 points with Adam long after the error has vanished; the tiny second moments then throw it out again.

expect: adam-instability
line: optimizer = torch.optim.Adam(model.parameters())
source: https://qastack.com.br/datascience/25024/strange-behavior-with-adam-optimizer-when-training-for-too-long
metric: largest loss in the last thousand steps, lower is better
"""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(545345 + parser.parse_args().seed)

N, D_in, D_out = 64, 1000, 1
x = torch.randn(N, D_in)
y = torch.randn(N, D_out)
model = torch.nn.Linear(D_in, D_out)
loss_fn = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.Adam(model.parameters())

history = []
for t in range(6000):
    y_pred = model(x)
    loss = loss_fn(y_pred, y)
    history.append(loss.item())
    if t % 500 == 0:
        print((t, loss.item()))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print("metric:", max(history[-1000:]))
