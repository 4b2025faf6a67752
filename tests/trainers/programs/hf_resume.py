"""The Trainer goes on from its own checkpoint, in the same script.

needs: transformers
expect: nothing
"""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(0)
start = torch.randint(0, 30, (512, 1))
tokens = (start + 3 * torch.arange(16)) % 32
data = [{"input_ids": row, "labels": row.clone()} for row in tokens]
config = GPT2Config(
    vocab_size=32, n_positions=16, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
)

with tempfile.TemporaryDirectory() as folder:

    def arguments(epochs):
        return TrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=16,
            learning_rate=1e-3,
            save_strategy="epoch",
            logging_steps=1,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        )

    model = GPT2LMHeadModel(config)
    Trainer(model, arguments(1), train_dataset=data).train()
    trainer = Trainer(model, arguments(3), train_dataset=data)
    trainer.train(resume_from_checkpoint=True)
    print("logged: train", [row["loss"] for row in trainer.state.log_history if "loss" in row][-1])
