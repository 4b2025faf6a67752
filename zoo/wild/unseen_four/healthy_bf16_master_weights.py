"""The network itself lies in bfloat16; Adam works on a float32 master copy, which is copied back after each step.

expect: nothing
style: model.bfloat16(), optimizer holds other tensors than the model on purpose, gradients cast up, copied back each step
"""
import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split


class MasterWeights:
    """float32 copies for an optimizer, in the manner of apex O2."""

    def __init__(self, module, make_optimizer):
        self.low = list(module.parameters())
        self.master = [p.detach().clone().float().requires_grad_() for p in self.low]
        self.optimizer = make_optimizer(self.master)

    def zero_grad(self):
        for p in self.low:
            p.grad = None

    def step(self, max_norm):
        for m, p in zip(self.master, self.low):
            m.grad = p.grad.float()
        norm = torch.nn.utils.clip_grad_norm_(self.master, max_norm)
        self.optimizer.step()
        with torch.no_grad():
            for m, p in zip(self.master, self.low):
                p.copy_(m)
        return norm


class MLP(nn.Module):
    def __init__(self, n_in, width, n_out):
        super().__init__()
        self.inp = nn.Linear(n_in, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head = nn.Linear(width, n_out)

    def forward(self, x):
        x = self.inp(x)
        for norm, layer in zip(self.norms, self.hidden):
            x = x + torch.nn.functional.gelu(layer(norm(x)))
        return self.head(x)


def main(seed):
    torch.manual_seed(seed)
    X, y = make_classification(6000, 30, n_informative=12, n_redundant=4, n_classes=4, class_sep=1.6, random_state=seed)
    Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=1000, random_state=seed)
    mu, sd = Xtr.mean(0), Xtr.std(0)
    Xtr, Xte = (torch.tensor((a - mu) / sd).bfloat16() for a in (Xtr, Xte))
    ytr, yte = torch.tensor(ytr), torch.tensor(yte)

    model = MLP(30, 96, 4).bfloat16()
    opt = MasterWeights(model, lambda ps: torch.optim.AdamW(ps, lr=1e-3, weight_decay=0.02))
    epochs = 8
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt.optimizer, T_max=epochs)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for idx in torch.randperm(len(Xtr)).split(64):
            opt.zero_grad()
            logits = model(Xtr[idx]).float()  # the loss is taken in float32
            loss = nn.functional.cross_entropy(logits, ytr[idx], label_smoothing=0.05)
            loss.backward()
            opt.step(max_norm=5.0)
            running += loss.item() * len(idx)
        sched.step()
        model.eval()
        with torch.no_grad():
            acc = (model(Xte).argmax(1) == yte).float().mean().item()
        print(f"epoch {epoch} loss {running / len(Xtr):.4f} test acc {acc:.4f}")
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    main(cli.parse_args().seed)
