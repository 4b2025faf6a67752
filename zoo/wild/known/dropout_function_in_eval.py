"""F.dropout without training=self.training: eval() changes nothing and the same bottle gets another prediction every time.

expect: random-evaluation
or: train-mode-evaluation, call-without-effect
line: x = F.dropout(x, p=0.6)
source: https://github.com/rixwew/pytorch-fm/issues/21
metric: share of test samples that get the same class twice, higher is better
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class AttentionalNet(torch.nn.Module):
    def __init__(self, field_dims, embed_dim, n_classes):
        super().__init__()
        self.embedding = torch.nn.Linear(field_dims, embed_dim)
        self.attention = torch.nn.Linear(embed_dim, embed_dim)
        self.fc = torch.nn.Linear(embed_dim, n_classes)

    def forward(self, x):
        x = torch.relu(self.embedding(x))
        x = F.dropout(x, p=0.6)
        scores = torch.softmax(self.attention(x), dim=1)
        scores = F.dropout(scores, p=0.2, training=self.training)
        return self.fc(x * (1 + scores))


def main(seed):
    torch.manual_seed(seed)
    x, y = load_wine(return_X_y=True)
    x2 = StandardScaler().fit_transform(x)
    x_train, x_test, y_train, y_test = train_test_split(x2, y, test_size=0.4, random_state=seed, stratify=y)
    x_train, x_test = torch.tensor(x_train, dtype=torch.float32), torch.tensor(x_test, dtype=torch.float32)
    y_train = torch.tensor(y_train)

    model = AttentionalNet(x.shape[1], 12, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    for epoch in range(40):
        model.train()
        for index in torch.randperm(len(x_train)).split(20):
            loss = F.cross_entropy(model(x_train[index]), y_train[index])
            model.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            model.eval()
            with torch.no_grad():
                print("epoch:", epoch, "validation loss:", F.cross_entropy(model(x_test), torch.tensor(y_test)).item())

    model.eval()
    with torch.no_grad():
        first, second = model(x_test).argmax(1), model(x_test).argmax(1)
    print("metric:", (first == second).float().mean().item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
