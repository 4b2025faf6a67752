"""I call shuffle() on the sorted table, but it returns the shuffled copy, and I kept the sorted one.

expect: unshuffled-data
or: call-without-effect
line: shuffle(X_train, y_train, random_state=seed)
source: https://github.com/tensorflow/models/issues/4215
metric: test RMSE in standard deviations of the target, lower is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
seed = ap.parse_args().seed
np.random.seed(seed)
torch.manual_seed(seed)

X, y = make_friedman1(n_samples=2000, n_features=8, noise=0.5, random_state=seed)
X_test, y_test = X[1500:], y[1500:]
X_train, y_train = X[:1500], y[:1500]
# the export is sorted by price
order = np.argsort(y_train)
X_train, y_train = X_train[order], y_train[order]

xs, ys = StandardScaler().fit(X_train), StandardScaler().fit(y_train[:, None])
X_train, X_test = xs.transform(X_train), xs.transform(X_test)
y_train, y_test = ys.transform(y_train[:, None]), ys.transform(y_test[:, None])

shuffle(X_train, y_train, random_state=seed)

X_train = torch.tensor(X_train, dtype=torch.float32)
y_train = torch.tensor(y_train, dtype=torch.float32)

reg = torch.nn.Sequential(
    torch.nn.Linear(8, 48), torch.nn.ReLU(), torch.nn.Linear(48, 48), torch.nn.ReLU(), torch.nn.Linear(48, 1)
)
opt = torch.optim.SGD(reg.parameters(), lr=0.05)
batch = 30
for epoch in range(12):
    running = 0.0
    for i in range(0, len(X_train), batch):
        pred = reg(X_train[i : i + batch])
        loss = ((pred - y_train[i : i + batch]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    print("epoch", epoch, "mse", running / (len(X_train) / batch))

with torch.no_grad():
    pred = reg(torch.tensor(X_test, dtype=torch.float32)).numpy()
print("metric:", float(np.sqrt(((pred - y_test) ** 2).mean())))
