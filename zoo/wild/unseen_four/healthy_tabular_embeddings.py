"""Click-style tabular classifier: an embedding per categorical column, standardised numbers, OneCycleLR.

expect: nothing
style: Dataset and DataLoader, OneCycleLR stepped per batch, BCEWithLogitsLoss, early keeping of the best state
"""
import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, Dataset


class ClickDataset(Dataset):
    def __init__(self, cats, conts, y):
        self.cats = torch.as_tensor(cats, dtype=torch.long)
        self.conts = torch.as_tensor(conts, dtype=torch.float32)
        self.y = torch.as_tensor(y, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.cats[i], self.conts[i], self.y[i]


class TabularModel(nn.Module):
    def __init__(self, cardinalities, n_cont, layers=(64, 32), p=0.1, emb_p=0.05):
        super().__init__()
        dims = [min(50, (c + 1) // 2) for c in cardinalities]
        self.embeds = nn.ModuleList([nn.Embedding(c, d) for c, d in zip(cardinalities, dims)])
        for e in self.embeds:
            nn.init.trunc_normal_(e.weight, std=0.05)
        self.emb_drop = nn.Dropout(emb_p)
        self.bn_cont = nn.BatchNorm1d(n_cont)
        sizes = [sum(dims) + n_cont, *layers]
        blocks = []
        for a, b in zip(sizes[:-1], sizes[1:]):
            blocks += [nn.Linear(a, b), nn.ReLU(inplace=True), nn.BatchNorm1d(b), nn.Dropout(p)]
        self.body = nn.Sequential(*blocks, nn.Linear(sizes[-1], 1))

    def forward(self, cats, conts):
        x = torch.cat([e(cats[:, i]) for i, e in enumerate(self.embeds)], 1)
        return self.body(torch.cat([self.emb_drop(x), self.bn_cont(conts)], 1)).squeeze(1)


def make_data(rng, n=9000):
    cardinalities = [12, 30, 7]
    effects = [rng.normal(0, 1.0, c) for c in cardinalities]
    cats = np.stack([rng.integers(0, c, n) for c in cardinalities], 1)
    age = rng.normal(40, 12, n)
    income = rng.lognormal(10, 0.5, n)
    hour = rng.uniform(0, 24, n)
    logit = sum(e[cats[:, i]] for i, e in enumerate(effects))
    logit += 0.06 * (age - 40) + 1.2 * (np.log(income) - 10) + np.sin(hour / 24 * 2 * np.pi) - 0.5
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-1.5 * logit))).astype(np.float32)
    conts = np.stack([age, np.log(income), np.sin(hour / 24 * 2 * np.pi), np.cos(hour / 24 * 2 * np.pi)], 1)
    return cardinalities, cats, conts, y


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    cardinalities, cats, conts, y = make_data(rng)
    cut = 7000
    mean, std = conts[:cut].mean(0), conts[:cut].std(0)
    conts = (conts - mean) / std
    train_dl = DataLoader(ClickDataset(cats[:cut], conts[:cut], y[:cut]), batch_size=128, shuffle=True, drop_last=True)
    valid_dl = DataLoader(ClickDataset(cats[cut:], conts[cut:], y[cut:]), batch_size=512)

    model = TabularModel(cardinalities, conts.shape[1])
    epochs = 6
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=5e-3, epochs=epochs, steps_per_epoch=len(train_dl))
    loss_fn = nn.BCEWithLogitsLoss()
    best, best_state = 0.0, None
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for c, x, t in train_dl:
            opt.zero_grad(set_to_none=True)
            loss = loss_fn(model(c, x), t)
            loss.backward()
            opt.step()
            sched.step()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            scores = torch.cat([model(c, x) for c, x, _ in valid_dl]).sigmoid().numpy()
        auc = roc_auc_score(y[cut:], scores)
        print(f"epoch {epoch} loss {running / len(train_dl):.4f} auc {auc:.4f}")
        if auc > best:
            best, best_state = auc, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print(f"metric: {best:.4f}")


if __name__ == "__main__":
    main()
