"""A pretrained encoder is put into a classifier, and the trainer then resets every parameter that it finds: the pretraining is lost.

expect: pretrained-weights-lost
or: call-without-effect
line: self._reset_params()
source: https://github.com/songyouwei/ABSA-PyTorch/issues/46
metric: test accuracy after fine-tuning on few examples, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn


class Encoder(nn.Module):
    """Stands for the downloaded language model."""

    def __init__(self, vocab=200, dim=32):
        super().__init__()
        self.word = nn.Embedding(vocab, dim)
        self.dense = nn.Linear(dim, dim)

    def forward(self, ids):
        return torch.tanh(self.dense(self.word(ids).mean(1)))


class BERT_SPC(nn.Module):
    def __init__(self, bert, dim=32, polarities=2):
        super(BERT_SPC, self).__init__()
        self.bert = bert
        self.dropout = nn.Dropout(0.1)
        self.dense = nn.Linear(dim, polarities)

    def forward(self, ids):
        return self.dense(self.dropout(self.bert(ids)))


def reviews(n, topics, valence):
    ids = torch.randint(0, 200, (n, 8))
    score = valence[ids].sum(1)
    return ids, topics[ids].sum(1), (score > 0).long()


def pretrain(valence, seed):
    """Predicts graded scores of plenty of reviews."""
    encoder, head = Encoder(), nn.Linear(32, 1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
    for step in range(700):
        ids, score, _ = reviews(64, valence, valence)
        loss = nn.functional.mse_loss(head(encoder(ids)).squeeze(1), score)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("pretraining loss", loss.item())
    return encoder.state_dict()


class Instructor:
    def __init__(self, opt):
        self.opt = opt
        torch.manual_seed(opt.seed)
        valence = torch.randn(200)
        bert = Encoder()
        bert.load_state_dict(pretrain(valence, opt.seed))
        self.model = BERT_SPC(bert)
        self.trainset = reviews(48, valence, valence)
        self.testset = reviews(600, valence, valence)

    def _reset_params(self):
        for p in self.model.parameters():
            if p.requires_grad:
                if len(p.shape) > 1:
                    nn.init.xavier_uniform_(p)
                else:
                    stdv = 1.0 / math.sqrt(p.shape[0])
                    nn.init.uniform_(p, a=-stdv, b=stdv)

    def run(self):
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.opt.learning_rate)
        self._reset_params()
        ids, _, label = self.trainset
        for epoch in range(self.opt.num_epoch):
            self.model.train()
            for i in torch.randperm(48).split(16):
                optimizer.zero_grad()
                loss = criterion(self.model(ids[i]), label[i])
                loss.backward()
                optimizer.step()
            if epoch % 10 == 0:
                print("epoch", epoch, "loss: {:.4f}".format(loss.item()))
        self.model.eval()
        with torch.no_grad():
            return (self.model(self.testset[0]).argmax(1) == self.testset[2]).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--learning_rate", default=1e-3, type=float)
    parser.add_argument("--num_epoch", default=60, type=int)
    print("metric:", Instructor(parser.parse_args()).run())
