# A small GPT in the style of nanoGPT: settings as globals, the loss inside the model, tied weights.
import math
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.nn import functional as F

from utils import checksum

block_size, batch_size, n_layer, n_head, n_embd = 16, 4, 2, 2, 16
learning_rate, max_iters, grad_clip = 1e-2, 8, 1.0
config_keys = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, int)]
print(config_keys)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(n_embd, dim=2)
        q, k, v = (z.view(b, t, n_head, c // n_head).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocabulary, bias=False)
        self.wte.weight = self.lm_head.weight
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * n_layer))

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


torch.manual_seed(1337)
data = torch.randint(12, (400,)).cumsum(0) % 29


def get_batch():
    ix = torch.randint(len(data) - block_size, (batch_size,))
    return (
        torch.stack([data[i : i + block_size] for i in ix]),
        torch.stack([data[i + 1 : i + 1 + block_size] for i in ix]),
    )


model = GPT(29)
decay = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
    lr=learning_rate,
    betas=(0.9, 0.95),
)
ctx = nullcontext()
best_val_loss = 1e9
for iter_num in range(max_iters):
    if iter_num % 4 == 0:
        model.eval()
        with torch.no_grad():
            losses = torch.stack([model(*get_batch())[1] for _ in range(2)])
        model.train()
        best_val_loss = min(best_val_loss, losses.mean().item())
        print(f"step {iter_num}: val loss {losses.mean():.4f}")
    X, Y = get_batch()
    with ctx:
        logits, loss = model(X, Y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"iter {iter_num}: loss {loss.item():.6f}")
print("weights", checksum(model))
