"""Preferences with TRL's DPO, on a small Llama.

needs: trl
expect: nothing
"""

import random

from datasets import Dataset, disable_caching
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import DPOConfig, DPOTrainer

from nethook.hf import NethookCallback

disable_caching()
set_seed(0)
words = "what is good bad is it yes no surely never maybe fine great awful".split()
vocab = {
    word: index for index, word in enumerate(["<pad>", "<eos>", "<unk>", *dict.fromkeys(words)])
}
base = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
base.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=base, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
)
good, bad = ["yes", "surely", "fine", "great"], ["no", "never", "awful", "bad"]
rows = [
    {
        "prompt": f"is it {random.choice(['good', 'fine', 'great'])}",
        "chosen": f" {random.choice(good)} {random.choice(good)}",
        "rejected": f" {random.choice(bad)} {random.choice(bad)}",
    }
    for _ in range(360)
]
data = Dataset.from_list(rows)
config = LlamaConfig(
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
args = DPOConfig(
    output_dir="out-dpo",
    num_train_epochs=2,
    per_device_train_batch_size=8,
    learning_rate=5e-4,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    use_cpu=True,
    bf16=False,
    max_length=32,
    disable_tqdm=True,
    gradient_checkpointing=False,
)
# As after SFT: the policy and its reference are loaded from a checkpoint.
LlamaForCausalLM(config).save_pretrained("out-dpo/start")
trainer = DPOTrainer(
    "out-dpo/start",
    args=args,
    train_dataset=data.select(range(300)),
    eval_dataset=data.select(range(300, 360)),
    processing_class=tokenizer,
    callbacks=[NethookCallback()],
)
trainer.train()
logs = trainer.state.log_history
print(
    "logged: train",
    [row["loss"] for row in logs if "loss" in row][-1],
    "eval",
    [row["eval_loss"] for row in logs if "eval_loss" in row][-1],
)
