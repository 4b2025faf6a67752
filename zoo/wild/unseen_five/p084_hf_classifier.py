"""A small BERT from a random configuration of transformers learns which half of the vocabulary a sentence is mostly of.

expect: nothing
style: transformers model that computes its own loss, linear warm-up, two groups with and without decay
metric: test accuracy, higher is better
"""

import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup


def sentences(n, length=8, vocab=30):
    """Label 1: words of the upper half are in the majority."""
    ids = torch.randint(3, vocab, (n, length))
    labels = ((ids > 16).sum(1) > length / 2).long()
    lengths = torch.randint(length, length + 1, (n,))
    mask = (torch.arange(length)[None] < lengths[:, None]).long()
    return TensorDataset(ids, mask, labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    config = BertConfig(vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=16, num_labels=2)
    model = BertForSequenceClassification(config)
    no_decay = ["bias", "LayerNorm.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(k in n for k in no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if any(k in n for k in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    loader = DataLoader(sentences(1600), batch_size=32, shuffle=True)
    scheduler = get_linear_schedule_with_warmup(optimizer, 20, args.epochs * len(loader))
    for epoch in range(args.epochs):
        model.train()
        for ids, mask, labels in loader:
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        print("epoch", epoch, "loss", loss.item())
    model.eval()
    right = 0
    with torch.no_grad():
        for ids, mask, labels in DataLoader(sentences(600), batch_size=100):
            right += (model(input_ids=ids, attention_mask=mask).logits.argmax(-1) == labels).sum().item()
    print("metric:", right / 600)


if __name__ == "__main__":
    main()
