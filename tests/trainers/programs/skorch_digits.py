"""A classifier of skorch in a pipeline of scikit-learn, with its inner validation split.

needs: skorch
expect: nothing
"""

import torch
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping
from torch import nn

torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 10)
        )

    def forward(self, x):
        return self.layers(x.float())


digits = load_digits()
net = NeuralNetClassifier(
    MLP,
    criterion=nn.CrossEntropyLoss,
    optimizer=torch.optim.Adam,
    lr=3e-3,
    max_epochs=8,
    batch_size=64,
    callbacks=[EarlyStopping(patience=4)],
    iterator_train__shuffle=True,
    verbose=0,
)
pipeline = make_pipeline(StandardScaler(), net)
pipeline.fit(digits.data, digits.target)
print("score", pipeline.score(digits.data, digits.target))
print("logged: train", net.history[-1, "train_loss"], "over 23 eval", net.history[-1, "valid_loss"])
