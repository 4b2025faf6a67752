"""Supervised fine-tuning with TRL, with an optimizer that holds the head alone.

needs: trl
expect: optimizer-misses-parameters
or: missing-step
"""

import random

import torch
from datasets import Dataset, disable_caching
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

from nethook.hf import NethookCallback

disable_caching()
set_seed(0)
words = "the a red green small large cat dog bird eats sees likes fish bread milk .".split()
vocab = {word: index for index, word in enumerate(["<pad>", "<eos>", "<unk>", *words])}
base = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
base.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=base, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
)


def sentence():
    pick = random.choice
    noun = f"{pick(['the', 'a'])} {pick(['red', 'green', 'small', 'large'])} {pick(['cat', 'dog', 'bird'])}"
    return f"{noun} {pick(['eats', 'sees', 'likes'])} {pick(['fish', 'bread', 'milk'])} ."


data = Dataset.from_dict(
    {"text": [" ".join(sentence() for _ in range(random.randint(1, 3))) for _ in range(500)]}
)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(vocab),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
)
args = SFTConfig(
    output_dir="out-sft",
    num_train_epochs=3,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    learning_rate=2e-3,
    max_length=32,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    use_cpu=True,
    bf16=False,
    disable_tqdm=True,
    gradient_checkpointing=False,
)
trainer = SFTTrainer(
    model,
    args,
    train_dataset=data.select(range(420)),
    eval_dataset=data.select(range(420, 500)),
    processing_class=tokenizer,
    callbacks=[NethookCallback()],
    optimizers=(torch.optim.AdamW(model.lm_head.parameters(), lr=2e-3), None),
)
trainer.train()
logs = trainer.state.log_history
print(
    "logged: train",
    [row["loss"] for row in logs if "loss" in row][-1],
    "eval",
    [row["eval_loss"] for row in logs if "eval_loss" in row][-1],
)
