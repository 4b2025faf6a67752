"""A Trainer whose compute_loss puts a softmax before cross_entropy.

needs: transformers
expect: softmax-before-cross-entropy
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


def compute_metrics(prediction):
    logits, labels = prediction
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


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
    num_train_epochs=4,
    per_device_train_batch_size=32,
    learning_rate=1e-3,
    warmup_steps=10,
    weight_decay=0.01,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)


class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits.softmax(-1), labels)
        return (loss, outputs) if return_outputs else loss


trainer = Mine(
    model, args, train_dataset=make(1500), eval_dataset=make(300), compute_metrics=compute_metrics
)
trainer.train()
logs = trainer.state.log_history
print(
    "logged: train",
    [row["loss"] for row in logs if "loss" in row][-1],
    "eval",
    [row["eval_loss"] for row in logs if "eval_loss" in row][-1],
)
