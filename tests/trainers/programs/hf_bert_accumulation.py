"""The same kind of classifier with accumulation, which the Trainer does not divide its loss by.

A find and no alarm: transformers#47688. What it logs of training is a sum of micro-batches.
needs: transformers
expect: nothing
or: unscaled-accumulation
"""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(0)
VOCAB = 60


def make(n):
    tokens = torch.randint(4, VOCAB, (n, 24))
    labels = ((tokens < 14).sum(1) > 4).long()
    return [
        {"input_ids": t, "attention_mask": torch.ones_like(t), "labels": y}
        for t, y in zip(tokens, labels)
    ]


model = BertForSequenceClassification(
    BertConfig(
        vocab_size=VOCAB,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
        num_labels=2,
    )
)
args = TrainingArguments(
    output_dir="out-bert",
    num_train_epochs=5,
    per_device_train_batch_size=16,
    gradient_accumulation_steps=4,
    learning_rate=1e-3,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model, args, train_dataset=make(1500), eval_dataset=make(300))
trainer.train()
logs = trainer.state.log_history
print("logged: eval", [row["eval_loss"] for row in logs if "eval_loss" in row][-1])
