"""transformers.Trainer on a tiny GPT-2 of random weights."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback

from utils import checksum


class Text(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        tokens = (torch.arange(12) * (index + 3)) % 31
        return {"input_ids": tokens, "labels": tokens}


if __name__ == "__main__":
    set_seed(11)
    config = GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=2,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            learning_rate=1e-2,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=Text(), eval_dataset=Text())
        trainer.remove_callback(PrinterCallback)
        result = trainer.train()
        print(f"steps {result.global_step} loss {result.training_loss:.6f}")
        print(f"eval loss {trainer.evaluate()['eval_loss']:.6f}")
    print("weights", checksum(model))
