"""A small T5 from scratch copies sequences backwards.

needs: transformers
expect: nothing
"""

import torch
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)

set_seed(0)


def make(n):
    tokens = torch.randint(2, 20, (n, 6))
    return [{"input_ids": row, "labels": row.flip(0)} for row in tokens]


model = T5ForConditionalGeneration(
    T5Config(
        vocab_size=20,
        d_model=48,
        d_kv=12,
        d_ff=96,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
)
args = Seq2SeqTrainingArguments(
    output_dir="out-t5",
    num_train_epochs=4,
    per_device_train_batch_size=32,
    learning_rate=3e-3,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Seq2SeqTrainer(model, args, train_dataset=make(1600), eval_dataset=make(160))
trainer.train()
logs = trainer.state.log_history
print(
    "logged: train",
    [row["loss"] for row in logs if "loss" in row][-1],
    "eval",
    [row["eval_loss"] for row in logs if "eval_loss" in row][-1],
)
