"""A small Llama from scratch, in bf16 autocast, cosine schedule with warm-up.

needs: transformers
expect: nothing
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

set_seed(0)
VOCAB = 40
chain = torch.softmax(3 * torch.randn(VOCAB, VOCAB), -1)


def make(n, length=16):
    rows = [torch.randint(VOCAB, (n,))]
    for _ in range(length - 1):
        rows.append(torch.multinomial(chain[rows[-1]], 1)[:, 0])
    tokens = torch.stack(rows, 1)
    return [{"input_ids": row, "labels": row.clone()} for row in tokens]


model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=0,
    )
)
args = TrainingArguments(
    output_dir="out-llama",
    num_train_epochs=3,
    per_device_train_batch_size=16,
    learning_rate=2e-3,
    bf16=True,
    lr_scheduler_type="cosine",
    warmup_steps=10,
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
