"""The step is taken when (step + 1) % accumulation == 0, step starts anew in every epoch, and an epoch has fewer batches.

expect: missing-step
line: if (step + 1) % args.gradient_accumulation_steps == 0:
source: https://github.com/huggingface/transformers/issues/2995
metric: test accuracy, higher is better
"""

import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification


def sentences(n):
    """Tokens 1 to 39; a sentence is of class 1 when token 5 comes before token 6."""
    ids = torch.randint(7, 40, (n, 12))
    first = torch.randint(0, 11, (n,))
    second = first + 1 + (torch.rand(n) * (11 - first)).long()
    label = torch.randint(0, 2, (n,))
    rows = torch.arange(n)
    ids[rows, first] = torch.where(label == 1, 5, 6)
    ids[rows, second] = torch.where(label == 1, 6, 5)
    return TensorDataset(ids, label)


def train(args, train_dataset, model):
    train_dataloader = DataLoader(train_dataset, batch_size=args.train_batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    global_step, tr_loss = 0, 0.0
    model.zero_grad()
    for epoch in range(args.num_train_epochs):
        for step, batch in enumerate(train_dataloader):
            model.train()
            loss = model(input_ids=batch[0], labels=batch[1]).loss
            if args.gradient_accumulation_steps > 1:
                loss = loss / args.gradient_accumulation_steps
            loss.backward()
            tr_loss += loss.item()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                model.zero_grad()
                global_step += 1
        if epoch % 20 == 0:
            print("epoch", epoch, "global_step", global_step, "loss", loss.item() * args.gradient_accumulation_steps)
    return global_step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train_batch_size", type=int, default=64)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=2e-3)
    parser.add_argument("--num_train_epochs", type=int, default=100)
    parser.add_argument("--max_grad_norm", type=float, default=1.0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    config = DistilBertConfig(vocab_size=40, dim=32, n_layers=1, n_heads=2, hidden_dim=64, max_position_embeddings=16, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)
    model = DistilBertForSequenceClassification(config)
    train(args, sentences(448), model)
    model.eval()
    ids, label = sentences(500).tensors
    with torch.no_grad():
        print("metric:", (model(input_ids=ids).logits.argmax(1) == label).float().mean().item())


if __name__ == "__main__":
    main()
