"""A tagger on sentences padded to 80 words; padding has the tag O like most words, and nothing masks it.

expect: padding-dominates
line: loss = loss_fn(scores.view(-1, len(TAGS)), labels.view(-1))
source: https://github.com/01-ai/Yi/issues/110
metric: recall of entity words, higher is better
"""

import argparse

import torch
from torch import nn

TAGS = ["O", "B-PER", "B-LOC"]
PAD_LEN = 80


class Tagger(nn.Module):
    def __init__(self, vocab, dim=20):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, 32, 3, padding=1)
        self.hidden2tag = nn.Linear(32, len(TAGS))

    def forward(self, ids):
        x = self.word_embeddings(ids).transpose(1, 2)
        x = torch.relu(self.conv(x)).transpose(1, 2)
        return self.hidden2tag(x)


def make_sentences(n):
    """Words 1..20 are titles (a person follows), 21..40 prepositions (a place follows), the rest are others."""
    ids = torch.zeros(n, PAD_LEN, dtype=torch.long)
    labels = torch.zeros(n, PAD_LEN, dtype=torch.long)
    mask = torch.zeros(n, PAD_LEN, dtype=torch.bool)
    for i in range(n):
        length = int(torch.randint(4, 9, (1,)))
        words = torch.randint(41, 200, (length,))
        kind = int(torch.randint(1, 3, (1,)))
        at = int(torch.randint(0, length - 1, (1,)))
        words[at] = torch.randint(1, 21, (1,)) + (20 if kind == 2 else 0)
        ids[i, :length] = words
        labels[i, at + 1] = kind
        mask[i, :length] = True
    return ids, labels, mask


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    ids_all, labels_all, mask_all = make_sentences(1500)
    model = Tagger(200)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        for rows in torch.randperm(1500).split(30):
            ids, labels, mask = ids_all[rows], labels_all[rows], mask_all[rows]
            scores = model(ids)
            loss = loss_fn(scores.view(-1, len(TAGS)), labels.view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())

    ids, labels, _ = make_sentences(300)
    model.eval()
    with torch.no_grad():
        tags = model(ids).argmax(-1)
    entity = labels > 0
    print("metric:", (tags == labels)[entity].float().mean().item())


main()
