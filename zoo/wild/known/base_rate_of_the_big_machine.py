"""The config's learning rate is for eight GPUs; on my one small batch the loss jumps about and nothing is learned.

expect: learning-rate-too-high
or: dead-units
line: "BASE_LR": 0.2
source: https://github.com/facebookresearch/grid-feats-vqa/issues/26
metric: test accuracy of the attributes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

CFG = {
    "SOLVER": {"BASE_LR": 0.2, "MOMENTUM": 0.9, "MAX_ITER": 350, "WARMUP_ITERS": 20, "IMS_PER_BATCH": 8},
    "MODEL": {"HIDDEN": 64, "NUM_CLASSES": 8, "ATTRIBUTES": 6},
}


class AttributeHead(nn.Module):
    """Object classes and, given the class, attributes; as in bottom-up features."""

    def __init__(self, cfg):
        super().__init__()
        hidden = cfg["MODEL"]["HIDDEN"]
        self.fc1 = nn.Linear(32, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.cls_score = nn.Linear(hidden, cfg["MODEL"]["NUM_CLASSES"])
        self.cls_embed = nn.Embedding(cfg["MODEL"]["NUM_CLASSES"], 16)
        self.attr_score = nn.Linear(hidden + 16, cfg["MODEL"]["ATTRIBUTES"])

    def forward(self, x, classes):
        x = F.relu(self.fc2(F.relu(self.fc1(x))))
        return self.cls_score(x), self.attr_score(torch.cat([x, self.cls_embed(classes)], 1))


def make_batch(n, centres, attr_w):
    classes = torch.randint(len(centres), (n,))
    style = torch.randn(n, 32)
    x = 1.5 * centres[classes] + style
    attributes = (style @ attr_w + centres[classes] @ attr_w).argmax(1)
    return x, classes, attributes


def do_train(cfg, seed):
    torch.manual_seed(seed)
    centres, attr_w = torch.randn(8, 32), torch.randn(32, 6)
    model = AttributeHead(cfg)
    s = cfg["SOLVER"]
    optimizer = torch.optim.SGD(model.parameters(), lr=s["BASE_LR"], momentum=s["MOMENTUM"], weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=s["WARMUP_ITERS"])
    for iteration in range(s["MAX_ITER"]):
        x, classes, attributes = make_batch(s["IMS_PER_BATCH"], centres, attr_w)
        cls, attr = model(x, classes)
        losses = {"loss_cls": F.cross_entropy(cls, classes), "loss_attr": F.cross_entropy(attr, attributes)}
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if iteration % 50 == 0:
            print("iter:", iteration, {k: round(v.item(), 3) for k, v in losses.items()})
    model.eval()
    with torch.no_grad():
        x, classes, attributes = make_batch(1000, centres, attr_w)
        return (model(x, classes)[1].argmax(1) == attributes).float().mean().item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    print("metric: %.4f" % do_train(CFG, ap.parse_args().seed))
