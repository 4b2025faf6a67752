"""fastai: one cycle, accumulation, clipping, early stopping.

needs: fastai
expect: nothing
"""

import torch
from fastai.basics import DataLoader, DataLoaders, Learner, accuracy, set_seed
from fastai.callback.schedule import *
from fastai.callback.tracker import EarlyStoppingCallback
from fastai.callback.training import GradientAccumulation, GradientClip
from sklearn.datasets import load_digits
from torch import nn

set_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
train = DataLoader(list(zip(x[:1400], y[:1400])), bs=16, shuffle=True, drop_last=True)
valid = DataLoader(list(zip(x[1400:], y[1400:])), bs=128)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 10))
learn = Learner(DataLoaders(train, valid), model, nn.CrossEntropyLoss(), metrics=accuracy)
with learn.no_bar(), learn.no_logging():
    learn.fit_one_cycle(
        8,
        5e-3,
        cbs=[GradientAccumulation(32), GradientClip(1.0), EarlyStoppingCallback(patience=4)],
    )
for row in learn.recorder.values:
    print(list(row))
print("logged: eval", learn.recorder.values[-1][1])
