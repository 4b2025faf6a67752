"""Ignite, with a softmax before a loss that has one.

needs: ignite
expect: softmax-before-cross-entropy
"""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Average, Loss
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
train = DataLoader(TensorDataset(x[:1408], y[:1408]), 32, shuffle=True, drop_last=True)
valid = DataLoader(TensorDataset(x[1408:], y[1408:]), 100)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
criterion = nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion, gradient_accumulation_steps=2)
Average().attach(trainer, "loss")
evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(criterion)})


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(valid)


trainer.run(train, max_epochs=8)
print(
    "logged: train", trainer.state.metrics["loss"], "over 22 eval", evaluator.state.metrics["loss"]
)
