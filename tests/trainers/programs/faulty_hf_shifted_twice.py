"""Labels are shifted by hand, and the model shifts them once more.

needs: transformers
expect: target-shifted
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(0)
VOCAB = 40
chain = torch.softmax(3 * torch.randn(VOCAB, VOCAB), -1)


def make(n, length=16):
    rows = [torch.randint(VOCAB, (n,))]
    for _ in range(length - 1):
        rows.append(torch.multinomial(chain[rows[-1]], 1)[:, 0])
    tokens = torch.stack(rows, 1)
    return [{"input_ids": row, "labels": torch.cat([row[1:], row[:1]])} for row in tokens]


model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=VOCAB,
        n_positions=32,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
    )
)
args = TrainingArguments(
    output_dir="out-gpt2",
    num_train_epochs=5,
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    learning_rate=3e-3,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model, args, train_dataset=make(640), eval_dataset=make(160))
trainer.train()
logs = trainer.state.log_history
print(
    "logged: train",
    [row["loss"] for row in logs if "loss" in row][-1],
    "eval",
    [row["eval_loss"] for row in logs if "eval_loss" in row][-1],
)
