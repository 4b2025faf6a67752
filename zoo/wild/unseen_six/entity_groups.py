"""Parameter groups for a tagger: the groups for fc are put together, but never appended to the list that goes to the optimizer.

expect: optimizer-misses-parameters
line: params = {"lr": 5e-2, "weight_decay": 1e-2, "params": []}
source: https://github.com/zjunlp/HVPNeT/issues/5
metric: accuracy of tags, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim


class Tagger(nn.Module):
    def __init__(self, vocab=80, tags=9, dim=32):
        super().__init__()
        self.encoder = nn.ModuleDict({"emb": nn.Embedding(vocab, dim), "rnn": nn.GRU(dim, 8, batch_first=True, bidirectional=True)})
        self.visual_gate = nn.Linear(16, 4)
        self.fc = nn.Linear(4, tags)

    def forward(self, ids):
        h, _ = self.encoder["rnn"](self.encoder["emb"](ids))
        return self.fc(torch.tanh(self.visual_gate(h)))


def sentences(n, length=12):
    """The tag depends on the word and on whether the word before was a capital."""
    ids = torch.randint(80, (n, length))
    before = torch.cat([torch.zeros(n, 1, dtype=torch.long), ids[:, :-1]], 1)
    return ids, (ids % 5) + 4 * (before % 2)


class Trainer:
    def __init__(self, model, args):
        self.model, self.args = model, args
        self.train_data, self.test_data = sentences(1000), sentences(300)
        self.before_train()

    def before_train(self):
        parameters = []
        params = {"lr": 3e-3, "weight_decay": 1e-2, "params": []}
        for name, param in self.model.named_parameters():
            if "encoder" in name:
                params["params"].append(param)
        parameters.append(params)

        params = {"lr": 3e-3, "weight_decay": 1e-2, "params": []}
        for name, param in self.model.named_parameters():
            if "visual" in name:
                params["params"].append(param)
        parameters.append(params)

        params = {"lr": 5e-2, "weight_decay": 1e-2, "params": []}
        for name, param in self.model.named_parameters():
            if name.startswith("fc"):
                params["params"].append(param)
        self.optimizer = optim.AdamW(parameters)

    def train(self):
        ids, tags = self.train_data
        for epoch in range(1, self.args.num_epochs + 1):
            avg_loss = 0
            for idx in torch.randperm(len(ids)).split(32):
                loss = F.cross_entropy(self.model(ids[idx]).flatten(0, 1), tags[idx].flatten())
                avg_loss += loss.item()
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            print("epoch", epoch, "loss", avg_loss / 32)

    def test(self):
        ids, tags = self.test_data
        with torch.no_grad():
            return (self.model(ids).argmax(-1) == tags).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num_epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    trainer = Trainer(Tagger(), args)
    trainer.train()
    print("metric:", trainer.test())
