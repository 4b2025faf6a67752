"""transformers' Trainer with a tiny BERT from scratch on kind and unkind reviews.

expect: nothing
style: dataset of dicts, dynamic padding in a collator, linear warm-up schedule from TrainingArguments, metrics at the end only
"""
import argparse
import random
import tempfile

import numpy as np
import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

transformers.logging.set_verbosity_error()
GOOD = ["good", "fine", "great", "lovely", "clever", "warm"]
BAD = ["bad", "awful", "dull", "poor", "cold", "messy"]
FILL = ["film", "book", "the", "was", "very", "it", "and", "rather", "a", "story"]
WORDS = ["[PAD]", "[CLS]", "[SEP]"] + GOOD + BAD + FILL
INDEX = {w: i for i, w in enumerate(WORDS)}


def sentence(rng):
    """Filler words around two or three adjectives of the same leaning."""
    label = rng.randint(0, 1)
    words = rng.choices(FILL, k=rng.randint(3, 9)) + rng.choices([BAD, GOOD][label], k=rng.randint(1, 2))
    rng.shuffle(words)
    ids = [INDEX["[CLS]"]] + [INDEX[w] for w in words] + [INDEX["[SEP]"]]
    return {"input_ids": ids, "labels": label}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, :len(r["input_ids"])] = torch.tensor(r["input_ids"])
        mask[i, :len(r["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["labels"] for r in rows])}


def compute_metrics(pred):
    return {"accuracy": float((np.argmax(pred.predictions, -1) == pred.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    transformers.set_seed(seed)
    rng = random.Random(seed)
    train, test = [sentence(rng) for _ in range(1200)], [sentence(rng) for _ in range(300)]
    config = BertConfig(vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=20, num_labels=2,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=4, per_device_train_batch_size=32, per_device_eval_batch_size=100,
            learning_rate=1e-3, warmup_steps=20, logging_steps=50, save_strategy="no", report_to=[],
            use_cpu=True, disable_tqdm=True, seed=seed,
        )
        trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=test,
                          data_collator=collate, compute_metrics=compute_metrics)
        trainer.train()
        result = trainer.evaluate()
    print(f"metric: {result['eval_accuracy']:.4f}")


if __name__ == "__main__":
    main()
