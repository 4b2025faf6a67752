"""The encoder sorts the batch by length for pack_padded_sequence and never restores the order; the labels were not sorted.

expect: target-misaligned
or: labels-shuffled, not-learning
line: return self.fc(self.drop(hidden[-1]))
source: https://github.com/pytorch/pytorch/issues/4927
metric: test accuracy, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

GOOD = "great fine lovely superb warm clever moving crisp".split()
BAD = "dull awful slow bland weak noisy stale clumsy".split()
REST = "the a film plot it was and with actor scene of music in story very end this one".split()
VOCAB = {word: i + 1 for i, word in enumerate(GOOD + BAD + REST)}


def review():
    positive = random.random() < 0.5
    words = random.choices(REST, k=random.randint(4, 28))
    for _ in range(random.randint(1, 3)):
        words.insert(random.randrange(len(words) + 1), random.choice(GOOD if positive else BAD))
    if random.random() < 0.4:
        words.insert(random.randrange(len(words) + 1), random.choice(REST))
    return torch.tensor([VOCAB[w] for w in words]), int(positive)


def collate(items):
    texts, labels = zip(*items)
    lengths = torch.tensor([len(t) for t in texts])
    return pad_sequence(texts, batch_first=True), lengths, torch.tensor(labels)


class SentimentRNN(nn.Module):
    def __init__(self, vocab, emb=24, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.rnn = nn.GRU(emb, hidden, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(hidden, 2)

    def forward(self, text, lengths):
        # pack_padded_sequence wants decreasing lengths
        lengths, perm_idx = lengths.sort(0, descending=True)
        text = text[perm_idx]
        packed = pack_padded_sequence(self.embedding(text), lengths, batch_first=True)
        _, hidden = self.rnn(packed)
        return self.fc(self.drop(hidden[-1]))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
random.seed(args.seed)

train = DataLoader([review() for _ in range(1500)], batch_size=30, shuffle=True, collate_fn=collate)
test = [review() for _ in range(300)]
model = SentimentRNN(len(VOCAB) + 1)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    model.train()
    epoch_loss = epoch_acc = 0
    for text, lengths, label in train:
        optimizer.zero_grad()
        predictions = model(text, lengths)
        loss = criterion(predictions, label)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        epoch_acc += (predictions.argmax(1) == label).float().mean().item()
    print(f"Epoch: {epoch + 1:02} | Train Loss: {epoch_loss / len(train):.3f} | Train Acc: {epoch_acc / len(train):.2%}")

model.eval()
with torch.no_grad():
    right = sum(int(model(text[None], torch.tensor([len(text)])).argmax() == label) for text, label in test)
print("metric:", right / len(test))
