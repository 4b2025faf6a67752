"""An autoencoder for outlier detection: the features go through StandardScaler, the output layer is a sigmoid.

expect: output-range
or: output-misfits-loss
line: layers.append(activation_by_name(self.output_activation))
source: https://github.com/yzhao062/pyod/issues/314
metric: mean squared error of the reconstruction of unseen inliers, lower is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def activation_by_name(name):
    return {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "linear": nn.Identity}[name]()


class AutoEncoder:
    """Fits on inliers; the score of a sample is its reconstruction error."""

    def __init__(self, hidden_neurons=(24, 12, 24), hidden_activation="relu", output_activation="sigmoid", epochs=40, batch_size=16, lr=2e-3):
        self.hidden_neurons = hidden_neurons
        self.hidden_activation = hidden_activation
        self.output_activation = output_activation
        self.epochs, self.batch_size, self.lr = epochs, batch_size, lr

    def _build(self, n_features):
        layers, size = [], n_features
        for width in self.hidden_neurons:
            layers += [nn.Linear(size, width), activation_by_name(self.hidden_activation)]
            size = width
        layers.append(nn.Linear(size, n_features))
        layers.append(activation_by_name(self.output_activation))
        return nn.Sequential(*layers)

    def fit(self, X):
        self.scaler_ = StandardScaler().fit(X)
        x = torch.tensor(self.scaler_.transform(X), dtype=torch.float32)
        self.model_ = self._build(x.shape[1])
        optimizer = torch.optim.Adam(self.model_.parameters(), lr=self.lr, weight_decay=1e-5)
        loader = DataLoader(TensorDataset(x), batch_size=self.batch_size, shuffle=True)
        self.model_.train()
        for epoch in range(self.epochs):
            overall = []
            for (batch,) in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model_(batch), batch)
                loss.backward()
                optimizer.step()
                overall.append(loss.item())
            if epoch % 5 == 0:
                print(f"Epoch {epoch + 1}/{self.epochs}: Loss = {np.mean(overall):.4f}")
        return self

    def decision_function(self, X):
        x = torch.tensor(self.scaler_.transform(X), dtype=torch.float32)
        self.model_.eval()
        with torch.no_grad():
            return (self.model_(x) - x).pow(2).mean(1).numpy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    X, y = load_breast_cancer(return_X_y=True)
    inliers = X[y == 1][np.random.default_rng(seed).permutation((y == 1).sum())]
    detector = AutoEncoder().fit(inliers[:260])
    scores = detector.decision_function(inliers[260:])
    print("metric:", float(scores.mean()))
