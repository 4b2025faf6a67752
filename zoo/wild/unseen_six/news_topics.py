"""A BERT classifier of headlines ends in Softmax, and nn.CrossEntropyLoss has one built in: the loss falls slowly and frequent topics win.

expect: softmax-before-cross-entropy
or: output-misfits-loss
line: self.softmax = nn.Softmax(dim=1)
source: https://github.com/illiterate/BertClassifier/issues/2
metric: mean recall over the topics, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertModel


class Headlines(Dataset):
    """Words of a topic are more likely in its headlines; topics are not equally frequent."""

    def __init__(self, n, topics=10, vocab=200, length=12):
        shares = torch.tensor([8.0, 5, 4, 3, 3, 2, 2, 2, 1, 1])
        self.labels = torch.multinomial(shares, n, replacement=True)
        common = torch.randint(2 + topics * 8, vocab, (n, length))
        own = 2 + self.labels[:, None] * 8 + torch.randint(0, 8, (n, length))
        self.ids = torch.where(torch.rand(n, length) < 0.25, own, common)
        self.ids[:, 0] = 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones_like(self.ids[i])}, self.labels[i]


class BertClassifier(nn.Module):
    def __init__(self, bert_config, num_labels):
        super().__init__()
        self.bert = BertModel(config=bert_config)
        self.classifier = nn.Linear(bert_config.hidden_size, num_labels)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, input_ids, attention_mask):
        outputs = self.bert(input_ids=input_ids, attention_mask=attention_mask)
        logits = self.classifier(outputs.pooler_output)
        logits = self.softmax(logits)
        return logits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_dataloader = DataLoader(Headlines(1500), batch_size=32, shuffle=True)
    valid_dataloader = DataLoader(Headlines(600), batch_size=100)
    bert_config = BertConfig(vocab_size=200, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, max_position_embeddings=16)
    model = BertClassifier(bert_config, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, args.epochs + 1):
        losses = 0
        model.train()
        for encoding, label_id in train_dataloader:
            output = model(**encoding)
            optimizer.zero_grad()
            loss = criterion(output, label_id)
            losses += loss.item()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "average loss", losses / len(train_dataloader))
    model.eval()
    right, seen = torch.zeros(10), torch.zeros(10)
    with torch.no_grad():
        for encoding, label_id in valid_dataloader:
            hit = (model(**encoding).argmax(1) == label_id).float()
            right.index_add_(0, label_id, hit)
            seen.index_add_(0, label_id, torch.ones_like(hit))
    print("metric:", (right / seen.clamp(min=1)).mean().item())


if __name__ == "__main__":
    main()
