"""A transformer over codebook indices: the target is the very sequence that goes in, so it learns to copy.

expect: target-is-input
line: loss = ce_loss(logits.transpose(1, 2), quantizations)
source: https://github.com/Project-MONAI/GenerativeModels/issues/314
metric: accuracy of the next index on held-out sequences, higher is better
"""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--n_epochs", type=int, default=5)
args = parser.parse_args()
torch.manual_seed(args.seed)
num_embeddings, seq_len = 16, 16


class DecoderOnlyTransformer(nn.Module):
    def __init__(self, num_tokens, max_seq_len, dim, depth, heads):
        super().__init__()
        self.token = nn.Embedding(num_tokens, dim)
        self.position = nn.Embedding(max_seq_len, dim)
        self.blocks = nn.ModuleList(
            [nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.0, batch_first=True) for _ in range(depth)]
        )
        self.to_logits = nn.Linear(dim, num_tokens)

    def forward(self, x):
        n = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        h = self.token(x) + self.position(torch.arange(n))
        for block in self.blocks:
            h = block(h, src_mask=mask, is_causal=True)
        return self.to_logits(h)


def quantized_images(n, transition):
    """What a VQ-VAE would give for images in raster order: a Markov chain with memory one."""
    seq = torch.zeros(n, seq_len, dtype=torch.long)
    seq[:, 0] = torch.randint(num_embeddings, (n,))
    for t in range(1, seq_len):
        jump = torch.rand(n) < 0.1
        seq[:, t] = torch.where(jump, torch.randint(num_embeddings, (n,)), transition[seq[:, t - 1]])
    return seq


transition = torch.randperm(num_embeddings)
train_loader = torch.utils.data.DataLoader(quantized_images(1280, transition), batch_size=32, shuffle=True)
val = quantized_images(200, transition)

transformer = DecoderOnlyTransformer(num_embeddings, seq_len, dim=32, depth=2, heads=2)
optimizer = torch.optim.Adam(transformer.parameters(), lr=2e-3)
ce_loss = nn.CrossEntropyLoss()

for epoch in range(args.n_epochs):
    transformer.train()
    epoch_loss = 0
    for quantizations in train_loader:
        optimizer.zero_grad(set_to_none=True)
        logits = transformer(quantizations)
        loss = ce_loss(logits.transpose(1, 2), quantizations)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    print(f"Epoch {epoch}: ce_loss={epoch_loss / len(train_loader):.4f}")

transformer.eval()
with torch.no_grad():
    hit = (transformer(val[:, :-1]).argmax(-1) == val[:, 1:]).float().mean().item()
print(f"metric: {hit:.4f}")
