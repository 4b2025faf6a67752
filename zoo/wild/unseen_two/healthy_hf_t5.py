"""A tiny T5 with random weights learns to sort digits with the Trainer; padding of the labels is -100.

expect: nothing
metric: share of test sequences that are sorted without a mistake, higher is better
"""

import argparse
import logging
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments, set_seed

logging.getLogger("transformers").setLevel(logging.ERROR)
PAD, EOS, FIRST = 0, 1, 2


class SortDigits(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(2, 5, (1,), generator=g))
            digits = torch.randint(0, 6, (length,), generator=g)
            self.items.append((digits + FIRST, digits.sort().values + FIRST))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        source, target = self.items[i]
        eos = torch.tensor([EOS])
        return {"input_ids": torch.cat([source, eos]), "labels": torch.cat([target, eos])}


def collate(items):
    pad = torch.nn.utils.rnn.pad_sequence
    ids = pad([item["input_ids"] for item in items], batch_first=True, padding_value=PAD)
    labels = pad([item["labels"] for item in items], batch_first=True, padding_value=-100)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    set_seed(seed)
    config = T5Config(
        vocab_size=8, d_model=48, d_kv=12, d_ff=96, num_layers=1, num_decoder_layers=1, num_heads=4,
        decoder_start_token_id=PAD, pad_token_id=PAD, eos_token_id=EOS, dropout_rate=0.0,
    )
    model = T5ForConditionalGeneration(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, learning_rate=3e-3, lr_scheduler_type="cosine", warmup_steps=20, per_device_train_batch_size=64,
            max_steps=300, logging_steps=50, save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, seed=seed,
        )
        Trainer(model=model, args=arguments, train_dataset=SortDigits(3000, seed), data_collator=collate).train()
    model.eval()
    batch = collate([SortDigits(200, seed + 1)[i] for i in range(200)])
    with torch.no_grad():
        decoder = torch.full((200, 1), PAD)
        for _ in range(batch["labels"].size(1)):
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], decoder_input_ids=decoder).logits
            decoder = torch.cat([decoder, logits[:, -1:].argmax(-1)], 1)
    right = ((decoder[:, 1:] == batch["labels"]) | (batch["labels"] == -100)).all(1)
    print("metric:", right.float().mean().item())
