"""A little DistilBERT from a random configuration, trained by transformers' Trainer with warm-up and evaluated by compute_metrics.

expect: nothing
style: Trainer, TrainingArguments, a Dataset of dictionaries, accuracy in numpy
metric: accuracy on the evaluation set, higher is better
"""

import argparse
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Orders(Dataset):
    """Label 1: the first of the two marked words is the larger one."""

    def __init__(self, n, rng):
        self.ids = rng.integers(5, 25, (n, 10))
        self.ids[:, 0] = 1
        self.labels = (self.ids[:, 2:6] >= 15).sum(1) > 2

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = torch.tensor(self.ids[i])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(self.labels[i])}


def compute_metrics(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, -1) == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    set_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    config = DistilBertConfig(vocab_size=25, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=16, num_labels=2)
    model = DistilBertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        training_args = TrainingArguments(
            output_dir=folder, num_train_epochs=5, per_device_train_batch_size=32, learning_rate=2e-3, warmup_steps=20, weight_decay=0.01,
            logging_steps=50, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=args.seed,
        )
        trainer = Trainer(model=model, args=training_args, train_dataset=Orders(1600, rng), eval_dataset=Orders(400, rng), compute_metrics=compute_metrics)
        trainer.train()
        result = trainer.evaluate()
    print("metric:", result["eval_accuracy"])


if __name__ == "__main__":
    main()
