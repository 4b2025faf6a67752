"""Prices of diamonds from a table with numbers, categories and gaps: logs as targets, an ensemble of folds, errors told in euros.

expect: nothing
style: pandas, embeddings of categories with a place for the unknown, medians from the training part, a model trained per fold
metric: median relative error on test rows, lower is better
"""

import argparse

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.model_selection import KFold

CUTS, CLARITY = ["fair", "good", "ideal"], ["I1", "SI", "VS", "IF"]


def table(n, rng):
    df = pd.DataFrame(
        {
            "carat": rng.lognormal(-0.4, 0.5, n),
            "depth": rng.normal(61, 2, n),
            "cut": rng.choice(CUTS, n, p=[0.2, 0.3, 0.5]),
            "clarity": rng.choice(CLARITY, n),
        }
    )
    log = (
        8.4
        + 1.8 * np.log(df.carat)
        + df.cut.map(dict(zip(CUTS, (-0.15, 0.0, 0.1))))
        + df.clarity.map(dict(zip(CLARITY, (-0.5, -0.1, 0.15, 0.5))))
    )
    log = log - 0.01 * (df.depth - 61) ** 2 + 0.08 * rng.standard_normal(n)
    df["price"] = np.exp(log).round()
    df.loc[rng.random(n) < 0.08, "depth"] = np.nan
    return df


class TableNet(nn.Module):
    def __init__(self, cardinalities, numeric):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c + 1, 4) for c in cardinalities)
        self.net = nn.Sequential(
            nn.Linear(numeric + 4 * len(cardinalities), 64),
            nn.SiLU(),
            nn.Dropout(0.05),
            nn.Linear(64, 64),
            nn.SiLU(),
            nn.Linear(64, 1),
        )

    def forward(self, cats, nums):
        return self.net(torch.cat([t(c) for t, c in zip(self.tables, cats.T)] + [nums], 1)).squeeze(
            1
        )


def encode(df, medians, mean, std):
    cats = torch.tensor(
        np.stack(
            [
                df.cut.map({c: i + 1 for i, c in enumerate(CUTS)}).fillna(0),
                df.clarity.map({c: i + 1 for i, c in enumerate(CLARITY)}).fillna(0),
            ],
            1,
        ).astype(int)
    )
    nums = df[["carat", "depth"]].fillna(medians)
    nums = ((nums.assign(carat=np.log(nums.carat)) - mean) / std).assign(
        gap=df.depth.isna().astype(float)
    )
    return cats, torch.tensor(nums.to_numpy(), dtype=torch.float)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=14)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    df, test = table(2400, rng), table(600, rng)
    guesses = []
    for fold, (tr, va) in enumerate(KFold(3, shuffle=True, random_state=args.seed).split(df)):
        part = df.iloc[tr]
        medians = part[["carat", "depth"]].median()
        filled = part[["carat", "depth"]].fillna(medians).assign(carat=lambda d: np.log(d.carat))
        mean, std = filled.mean(), filled.std()
        log = np.log(part.price)
        y = torch.tensor(((log - log.mean()) / log.std()).to_numpy(), dtype=torch.float)
        cats, nums = encode(part, medians, mean, std)
        model = TableNet([len(CUTS), len(CLARITY)], 3)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
        for epoch in range(args.epochs):
            model.train()
            for idx in torch.randperm(len(y)).split(64):
                loss = nn.functional.smooth_l1_loss(model(cats[idx], nums[idx]), y[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            price = lambda rows: np.exp(
                model(*encode(rows, medians, mean, std)).numpy() * log.std() + log.mean()
            )
            val = df.iloc[va]
            print(f"fold {fold} MAE {np.abs(price(val) - val.price).mean():.0f} EUR")
            guesses.append(price(test))
    print("metric:", float(np.median(np.abs(np.mean(guesses, 0) / test.price - 1))))


if __name__ == "__main__":
    main()
