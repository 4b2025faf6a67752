"""Fine-tuning of a small BERT: rates that shrink from layer to layer, no decay on norms and biases, warmup, the first layers frozen.

expect: nothing
style: transformers without its Trainer, a masked-word pretraining of own before it, pooler unused
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn.functional as F
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    get_linear_schedule_with_warmup,
)

PAD, CLS, MASK, WORDS = 0, 1, 2, 40


def texts(n, length=14):
    """Words come in pairs (2k, 2k + 1); the mood is whether more good pairs than bad ones occur."""
    mood = torch.randint(2, (n,))
    ids, att = torch.zeros(n, length, dtype=torch.long), torch.zeros(n, length, dtype=torch.long)
    for i in range(n):
        pairs = int(torch.randint(3, length // 2 + 0, ()))
        good = torch.rand(pairs) < (0.8 if mood[i] else 0.2)
        words = torch.stack([4 + 2 * (torch.randint(9, (pairs,)) + 9 * good.long())]).T
        row = torch.cat([words, words + 1], 1).flatten()
        ids[i, 0], ids[i, 1 : 1 + len(row)] = CLS, row
        att[i, : 1 + len(row)] = 1
        mood[i] = int(good.float().mean() > 0.5)
    return ids, att, mood


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pretrain", type=int, default=120)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    config = BertConfig(
        vocab_size=WORDS + 4,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=16,
        num_labels=2,
    )
    (ids, att, y), (ids_t, att_t, y_t) = texts(900), texts(300)
    mlm = BertForMaskedLM(config)
    optimizer = torch.optim.AdamW(mlm.parameters(), lr=2e-3)
    for step in range(args.pretrain):
        idx = torch.randint(len(ids), (32,))
        hidden = (torch.rand(32, 14) < 0.2) & (att[idx] > 0)
        hidden[:, 1] = True
        loss = mlm(
            ids[idx].masked_fill(hidden, MASK), att[idx], labels=ids[idx].masked_fill(~hidden, -100)
        ).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretraining loss {loss.item():.3f}")

    model = BertForSequenceClassification(config)
    model.bert.load_state_dict(mlm.bert.state_dict(), strict=False)
    model.bert.embeddings.requires_grad_(False)
    groups, lr = [], 2e-3
    layers = [model.classifier, model.bert.pooler, *reversed(model.bert.encoder.layer)]
    for depth, layer in enumerate(layers):
        named = list(layer.named_parameters())
        plain = [p for n, p in named if "LayerNorm" in n or n.endswith("bias")]
        decayed = [p for n, p in named if not ("LayerNorm" in n or n.endswith("bias"))]
        rate = lr * 0.8**depth
        groups += [
            {"params": decayed, "lr": rate, "weight_decay": 0.01},
            {"params": plain, "lr": rate, "weight_decay": 0.0},
        ]
    optimizer = torch.optim.AdamW(groups)
    total = args.epochs * 29
    scheduler = get_linear_schedule_with_warmup(optimizer, total // 10, total)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(ids)).split(32):
            loss = F.cross_entropy(model(ids[idx], att[idx]).logits, y[idx])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            acc = (model(ids_t, att_t).logits.argmax(1) == y_t).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} eval_accuracy {acc:.4f}")
    print("metric:", acc)


if __name__ == "__main__":
    main()
