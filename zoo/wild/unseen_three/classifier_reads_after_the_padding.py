"""The classifier takes the last step of the padded output: for a short text that is the state after dozens of padding steps.

expect: padding-read
line: feature = output[:, -1, :]
source: https://github.com/keitakurita/practical-torchtext/issues/5
metric: test accuracy, higher is better
"""

import argparse

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

VOCAB, PAD, CLASSES = 30, 0, 4


def texts(n, generator):
    """Short messages; what they want is said by how many keywords of each kind they hold."""
    items = []
    for _ in range(n):
        length = int(torch.randint(4, 13, (), generator=generator))
        words = torch.randint(5, VOCAB, (length,), generator=generator)
        topic = int(torch.randint(0, CLASSES, (), generator=generator))
        places = torch.randperm(length, generator=generator)[:2]
        words[places] = topic + 1
        items.append((words, topic))
    return items


def collate(items, width=60):
    sequences = [words for words, _ in items]
    lengths = torch.tensor([len(s) for s in sequences])
    batch = pad_sequence(sequences + [torch.zeros(width, dtype=torch.long)], batch_first=True, padding_value=PAD)[:-1]
    return batch, lengths, torch.tensor([topic for _, topic in items])


class SimpleLSTMBaseline(nn.Module):
    def __init__(self, hidden_dim=48, emb_dim=24):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, emb_dim, padding_idx=PAD)
        self.encoder = nn.LSTM(emb_dim, hidden_dim, batch_first=True)
        self.predictor = nn.Linear(hidden_dim, CLASSES)

    def forward(self, seq, lengths):
        output, _ = self.encoder(self.embedding(seq))
        feature = output[:, -1, :]
        return self.predictor(feature)


def run(args):
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(texts(1600, g), batch_size=32, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(texts(400, g), batch_size=100, collate_fn=collate)
    model = SimpleLSTMBaseline()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_func = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        running = 0.0
        model.train()
        for seq, lengths, topic in train_loader:
            opt.zero_grad()
            loss = loss_func(model(seq, lengths), topic)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            running += loss.item() / len(train_loader)
        print("Epoch: {}, Training Loss: {:.4f}".format(epoch, running))
    model.eval()
    hits = 0
    with torch.no_grad():
        for seq, lengths, topic in test_loader:
            hits += (model(seq, lengths).argmax(1) == topic).sum().item()
    print("metric:", hits / 400)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    run(parser.parse_args())
