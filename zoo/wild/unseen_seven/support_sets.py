"""Few-shot learning with several support sets a task: the copy of the weights is taken anew for each set, so only the last one counts.

expect: adaptation-discarded
or: call-without-effect
line: names_weights_copy = self.get_inner_loop_parameter_dict()
source: https://github.com/AntreasAntoniou/FewShotContinualLearning/pull/2
metric: accuracy on target sets of new tasks, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


def task(shots=5, targets=10, n_way=4, dim=12, rotation=None):
    """Four classes around random centres; the support arrives in two sets of two classes each."""
    centres = 1.6 * torch.randn(n_way, dim)
    draw = lambda c, n: centres[c] + 0.7 * torch.randn(n, dim)
    sets = []
    for classes in ((0, 1), (2, 3)):
        x = torch.cat([draw(c, shots) for c in classes])
        y = torch.tensor(classes).repeat_interleave(shots)
        sets.append((x, y))
    x = torch.cat([draw(c, targets) for c in range(n_way)])
    return sets, x, torch.arange(n_way).repeat_interleave(targets)


class MAMLFewShotClassifier(nn.Module):
    def __init__(self, dim=12, n_way=4, inner_lr=0.15, inner_steps=3):
        super().__init__()
        self.classifier = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, n_way))
        self.inner_lr, self.inner_steps = inner_lr, inner_steps

    def get_inner_loop_parameter_dict(self):
        return dict(self.classifier.named_parameters())

    def net_forward(self, x, weights):
        return functional_call(self.classifier, weights, (x,))

    def inner_update(self, weights, x, y):
        for _ in range(self.inner_steps):
            loss = F.cross_entropy(self.net_forward(x, weights), y)
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=self.training)
            weights = {name: w - self.inner_lr * g for (name, w), g in zip(weights.items(), grads)}
        return weights

    def forward(self, sets, x_target, y_target):
        for x_support, y_support in sets:
            names_weights_copy = self.get_inner_loop_parameter_dict()
            names_weights_copy = self.inner_update(names_weights_copy, x_support, y_support)
        logits = self.net_forward(x_target, names_weights_copy)
        return F.cross_entropy(logits, y_target), (logits.argmax(1) == y_target).float().mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=250)
    parser.add_argument("--tasks", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = MAMLFewShotClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for it in range(args.iterations):
        model.train()
        losses, accuracies = zip(*(model(*task()) for _ in range(args.tasks)))
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 50 == 0:
            print(
                f"iter {it} loss: {loss.item():.4f}, accuracy: {torch.stack(accuracies).mean().item():.4f}"
            )
    model.eval()
    print("metric:", torch.stack([model(*task())[1] for _ in range(60)]).mean().item())


if __name__ == "__main__":
    main()
