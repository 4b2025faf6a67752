"""A BERT with a language-model head learns the next token without a causal mask.

needs: transformers
expect: sees-the-future
or: target-shifted, target-is-input
"""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertModel, Trainer, TrainingArguments, set_seed

set_seed(0)
VOCAB = 40
chain = torch.softmax(3 * torch.randn(VOCAB, VOCAB), -1)


def make(n, length=16):
    rows = [torch.randint(VOCAB, (n,))]
    for _ in range(length - 1):
        rows.append(torch.multinomial(chain[rows[-1]], 1)[:, 0])
    tokens = torch.stack(rows, 1)
    return [{"input_ids": row, "labels": row.clone()} for row in tokens]


class NextToken(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel(
            BertConfig(
                vocab_size=VOCAB,
                hidden_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=96,
                max_position_embeddings=32,
            ),
            add_pooling_layer=False,
        )
        self.head = nn.Linear(48, VOCAB)

    def forward(self, input_ids, labels=None):
        logits = self.head(self.bert(input_ids).last_hidden_state)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), labels[:, 1:].reshape(-1))
        return {"loss": loss, "logits": logits}


model = NextToken()
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
