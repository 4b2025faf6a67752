"""backward() complained that the loss needs no gradient, so I wrapped the loss in a Variable that does: it never goes down.

expect: no-gradient
line: outputs = outputs.data
source: https://github.com/huggingface/torchMoji/issues/21
metric: validation accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset


class AttentionOverWords(nn.Module):
    def __init__(self, size, return_tensor=True):
        super(AttentionOverWords, self).__init__()
        self.attention_vector = nn.Parameter(torch.randn(size) * 0.1)
        self.return_tensor = return_tensor

    def forward(self, x):
        weights = torch.softmax(x @ self.attention_vector, dim=1)
        outputs = (x * weights.unsqueeze(2)).sum(1)
        return outputs


class Moji(nn.Module):
    def __init__(self, nb_classes, nb_tokens, return_tensor=True):
        super(Moji, self).__init__()
        self.embed = nn.Embedding(nb_tokens, 16)
        self.attention_layer = AttentionOverWords(16)
        self.output_layer = nn.Sequential(nn.Dropout(0.1), nn.Linear(16, nb_classes))
        self.return_tensor = return_tensor

    def forward(self, tokens):
        outputs = self.output_layer(self.attention_layer(torch.tanh(self.embed(tokens))))
        if self.return_tensor:
            outputs = outputs.data
        return outputs


def fit_model(model, loss_op, optim_op, train_gen, val_gen, epochs):
    for epoch in range(epochs):
        model.train()
        for X, y in train_gen:
            optim_op.zero_grad()
            output = model(X)
            loss = loss_op(output, y)
            loss = Variable(loss, requires_grad=True)
            loss.backward()
            optim_op.step()
        acc = evaluate(model, val_gen)
        print("%d Epoch val acc %.2f val loss %.5f" % (epoch + 1, 100 * acc, loss.item()))


def evaluate(model, gen):
    model.eval()
    with torch.no_grad():
        return np.mean([(model(X).argmax(1) == y).float().mean().item() for X, y in gen])


def sentences(n):
    """The label is which of four groups of words is met most often."""
    X = torch.randint(0, 40, (n, 15))
    y = torch.stack([(X // 10 == k).sum(1) for k in range(4)], 1).argmax(1)
    return TensorDataset(X, y)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    train_gen = DataLoader(sentences(1200), batch_size=32, shuffle=True)
    val_gen = DataLoader(sentences(400), batch_size=100)
    model = Moji(nb_classes=4, nb_tokens=40)
    fit_model(model, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=5e-3), train_gen, val_gen, 6)
    print("metric: %.4f" % evaluate(model, val_gen))
