"""A tiny GPT-2 trained with transformers' Trainer; labels are a copy of input_ids, because the model shifts them itself.

expect: nothing
style: transformers.Trainer, causal language model, linear warm-up and decay (looks like a target that equals the input)
"""

import argparse
import random
import tempfile

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class TextDataset(torch.utils.data.Dataset):
    """Sentences of a toy grammar: article adjective* noun verb, again and again."""

    follows = {0: [1, 2, 3, 4, 5], 1: [1, 2, 3, 4, 5, 6], 2: [7], 3: [8], 4: [9], 5: [10], 6: [2, 3], 7: [0], 8: [0, 6], 9: [0], 10: [0, 1]}

    def __init__(self, n, rng):
        self.rows = []
        for _ in range(n):
            row = [0]
            while len(row) < 16:
                row.append(rng.choice(self.follows[row[-1]]))
            self.rows.append(row)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = torch.tensor(self.rows[i])
        return {"input_ids": ids, "labels": ids.clone()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    set_seed(seed)
    rng = random.Random(seed)
    train, held_out = TextDataset(1280, rng), TextDataset(128, rng)
    config = GPT2Config(vocab_size=11, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        training_args = TrainingArguments(
            output_dir=folder, num_train_epochs=4, per_device_train_batch_size=32, learning_rate=3e-3, warmup_steps=20,
            weight_decay=0.01, logging_steps=40, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=seed,
        )
        trainer = Trainer(model=model, args=training_args, train_dataset=train, eval_dataset=held_out)
        trainer.train()
        metrics = trainer.evaluate()
    print("metric: %.4f (chance %.4f)" % (metrics["eval_loss"], np.log(11)))


if __name__ == "__main__":
    main()
