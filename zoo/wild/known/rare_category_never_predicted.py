"""97 % of the products are "other", so my classifier learned to put everything there and has 97 % accuracy.

expect: class-collapse
line: loss_fn = nn.CrossEntropyLoss()
source: https://www.semantics3.com/blog/debugging-neural-networks-a-checklist-ca52e11151ec/
metric: mean recall over the categories, higher is better
"""

import argparse
from collections import Counter

import torch
from sklearn.datasets import make_classification
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load(seed):
    X, y = make_classification(
        n_samples=5000, n_features=16, n_informative=6, n_classes=3, n_clusters_per_class=1,
        weights=[0.97, 0.015, 0.015], class_sep=0.7, flip_y=0.0, random_state=seed,
    )
    return train_test_split(StandardScaler().fit_transform(X), y, test_size=0.4, stratify=y, random_state=seed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X_train, X_test, y_train, y_test = load(args.seed)
    print("categories:", Counter(y_train.tolist()))

    train_data = TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train))
    dataloader = DataLoader(train_data, batch_size=64, shuffle=True)

    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 3))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

    for epoch in range(6):
        model.train()
        for X, y in dataloader:
            pred = model(X)
            loss = loss_fn(pred, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = (pred.argmax(1) == y).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():>7f}, accuracy of the last batch {accuracy:.3f}")

    model.eval()
    with torch.no_grad():
        y_pred = model(torch.tensor(X_test, dtype=torch.float32)).argmax(1).numpy()
    print("predicted:", Counter(y_pred.tolist()))
    print(f"metric: {recall_score(y_test, y_pred, average='macro'):.4f}")


if __name__ == "__main__":
    main()
