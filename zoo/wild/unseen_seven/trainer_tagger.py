"""Tags for words with transformers' Trainer: pieces after the first are ignored, rows are padded by a collator, metrics are computed.

expect: nothing
style: DistilBERT of two layers from its config, labels of -100, gradient accumulation, cosine with warmup
metric: accuracy over tagged pieces, higher is better
"""

import argparse
import tempfile
import warnings

import numpy as np
import torch
from transformers import (
    DistilBertConfig,
    DistilBertForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

warnings.filterwarnings("ignore")
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=float, default=5)
args = parser.parse_args()
set_seed(args.seed)

STEMS, SUFFIX = 20, 4  # pieces 4..23 are stems, 24..27 are endings


def sentences(n):
    """The tag of a stem is given by itself, and turns over where the word before it bore the ending 24."""
    rows = []
    for _ in range(n):
        ids, labels, turned = [1], [-100], False
        for _ in range(np.random.randint(3, 8)):
            stem = np.random.randint(STEMS)
            tag = stem % 3
            ids.append(4 + stem)
            labels.append((tag + 1) % 3 if turned else tag)
            turned = False
            if np.random.rand() < 0.6:
                ending = np.random.randint(SUFFIX)
                ids.append(24 + ending)
                labels.append(-100)
                turned = ending == 0
        rows.append({"input_ids": ids, "labels": labels})
    return rows


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    pad = lambda row, value: row + [value] * (longest - len(row))
    return {
        "input_ids": torch.tensor([pad(f["input_ids"], 0) for f in features]),
        "attention_mask": torch.tensor([pad([1] * len(f["input_ids"]), 0) for f in features]),
        "labels": torch.tensor([pad(f["labels"], -100) for f in features]),
    }


def compute_metrics(prediction):
    real = prediction.label_ids != -100
    return {
        "accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids)[real].mean())
    }


config = DistilBertConfig(
    vocab_size=28,
    dim=48,
    n_layers=2,
    n_heads=4,
    hidden_dim=96,
    max_position_embeddings=24,
    num_labels=3,
    dropout=0.05,
)
model = DistilBertForTokenClassification(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=args.epochs, per_device_train_batch_size=16, per_device_eval_batch_size=100, gradient_accumulation_steps=2,
        learning_rate=4e-3, warmup_steps=20, lr_scheduler_type="cosine", weight_decay=0.01, logging_steps=40, save_strategy="no",
        report_to=[], use_cpu=True, seed=args.seed, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model,
        arguments,
        data_collator=collate,
        train_dataset=sentences(1500),
        eval_dataset=sentences(300),
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print("metric:", trainer.evaluate()["eval_accuracy"])
