"""The output projection of the attention is built inside forward: a new random layer at every call, and none is ever trained.

expect: unregistered-layers
or: optimizer-misses-parameters, random-evaluation
line: output = nn.Linear(self.n_heads * self.d_v, self.d_model)(context)
source: https://github.com/graykode/nlp-tutorial/issues/29
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

d_model, d_k, n_heads, vocab, seq_len = 32, 16, 2, 16, 10


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.d_model, self.d_v, self.n_heads = d_model, d_k, n_heads
        self.W_Q = nn.Linear(d_model, d_k * n_heads)
        self.W_K = nn.Linear(d_model, d_k * n_heads)
        self.W_V = nn.Linear(d_model, d_k * n_heads)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        residual, batch_size = x, x.size(0)
        q_s = self.W_Q(x).view(batch_size, -1, self.n_heads, d_k).transpose(1, 2)
        k_s = self.W_K(x).view(batch_size, -1, self.n_heads, d_k).transpose(1, 2)
        v_s = self.W_V(x).view(batch_size, -1, self.n_heads, d_k).transpose(1, 2)
        attn = nn.Softmax(dim=-1)(torch.matmul(q_s, k_s.transpose(-1, -2)) / np.sqrt(d_k))
        context = torch.matmul(attn, v_s).transpose(1, 2).contiguous().view(batch_size, -1, self.n_heads * self.d_v)
        output = nn.Linear(self.n_heads * self.d_v, self.d_model)(context)
        return self.norm(output + residual)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.pos = nn.Embedding(seq_len, d_model)
        self.layers = nn.ModuleList([MultiHeadAttention() for _ in range(2)])
        self.ffn = nn.Sequential(nn.Linear(d_model, 64), nn.ReLU(), nn.Linear(64, d_model))
        self.projection = nn.Linear(d_model, vocab)

    def forward(self, tokens):
        x = self.emb(tokens) + self.pos(torch.arange(seq_len))
        for layer in self.layers:
            x = layer(x)
        x = x + self.ffn(x)
        return self.projection(x[:, 0])


def make_batch(n):
    """The first token is a position: which token stands there?"""
    tokens = torch.randint(0, vocab, (n, seq_len))
    tokens[:, 0] = torch.randint(1, seq_len, (n,))
    return tokens, tokens[torch.arange(n), tokens[:, 0]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = Transformer()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    for step in range(800):
        optimizer.zero_grad()
        inputs, targets = make_batch(64)
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if (step + 1) % 100 == 0:
            print("Step:", "%04d" % (step + 1), "cost =", "{:.6f}".format(loss))
    model.eval()
    with torch.no_grad():
        inputs, targets = make_batch(1000)
        print("metric:", (model(inputs).argmax(1) == targets).float().mean().item())
