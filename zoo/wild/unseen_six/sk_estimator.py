"""A classifier with fit and predict for sklearn: cross_val_score trains five networks one after the other, in a pipeline with a scaler.

expect: nothing
style: BaseEstimator, ClassifierMixin, numpy in and out, stratified folds
metric: mean accuracy over the folds, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn


class TorchClassifier(ClassifierMixin, BaseEstimator):
    def __init__(self, hidden=24, lr=0.01, epochs=12, batch_size=32, random_state=0):
        self.hidden, self.lr, self.epochs, self.batch_size, self.random_state = hidden, lr, epochs, batch_size, random_state

    def fit(self, X, y):
        torch.manual_seed(self.random_state)
        self.classes_, target = np.unique(y, return_inverse=True)
        X, target = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(target)
        self.net_ = nn.Sequential(nn.Linear(X.shape[1], self.hidden), nn.ReLU(), nn.Linear(self.hidden, len(self.classes_)))
        optimizer = torch.optim.Adam(self.net_.parameters(), lr=self.lr, weight_decay=1e-4)
        for _ in range(self.epochs):
            for idx in torch.randperm(len(X)).split(self.batch_size):
                loss = nn.functional.cross_entropy(self.net_(X[idx]), target[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return self

    def predict_proba(self, X):
        with torch.no_grad():
            return self.net_(torch.as_tensor(X, dtype=torch.float32)).softmax(1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), TorchClassifier(random_state=args.seed))
    scores = cross_val_score(model, X, y, cv=StratifiedKFold(5, shuffle=True, random_state=args.seed))
    print("folds", scores.round(3))
    print("metric:", scores.mean())
