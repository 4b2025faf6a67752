"""Six topics, and the config says num_labels=1: transformers takes that for a regression and uses the squared error.

expect: loss-target-mismatch
line: num_labels=1,
source: https://github.com/huggingface/transformers/issues/1706
metric: test accuracy, higher is better
"""

import argparse
import logging
import tempfile

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

logging.getLogger("transformers").setLevel(logging.ERROR)


class Headlines(torch.utils.data.Dataset):
    """20 tokens each; a topic is a set of words, and another topic is touched in passing."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 6, n)
        self.ids = rng.integers(32, 60, (n, 20))
        for row, topic in enumerate(self.labels):
            other = (topic + rng.integers(1, 6)) % 6
            places = rng.choice(19, 6, replace=False) + 1
            self.ids[row, places] = 2 + 5 * np.array([topic] * 4 + [other] * 2) + rng.integers(0, 5, 6)
        self.ids[:, 0] = 1

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.ids[i]), "labels": torch.tensor(self.labels[i])}


def collate(items):
    batch = {key: torch.stack([item[key] for item in items]) for key in items[0]}
    if config.num_labels == 1:
        batch["labels"] = batch["labels"].float()
    return batch


def topic_of(logits):
    if logits.shape[1] == 1:
        return np.clip(np.rint(logits[:, 0]), 0, 5)
    return logits.argmax(-1)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
set_seed(seed)
config = BertConfig(
    vocab_size=60,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=24,
    num_labels=1,
)
model = BertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=folder,
            learning_rate=1e-3,
            per_device_train_batch_size=32,
            num_train_epochs=8,
            logging_steps=50,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=seed,
        ),
        train_dataset=Headlines(1200, seed),
        data_collator=collate,
    )
    trainer.train()
    test = Headlines(400, seed + 100)
    predicted = trainer.predict(test)
print("metric:", float((topic_of(predicted.predictions) == test.labels).mean()))
