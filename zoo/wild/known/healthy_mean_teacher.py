"""Mean teacher for half-labelled data: the teacher is a moving average of the student and no optimizer touches it.

expect: nothing
style: semi-supervised, EMA teacher, consistency weight ramped up (looks like a second network forgotten and an unbalanced term)
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons


def create_model(ema=False):
    model = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.1), nn.Dropout(0.1), nn.Linear(48, 48), nn.LeakyReLU(0.1), nn.Linear(48, 2))
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


def update_ema_variables(model, ema_model, alpha, global_step):
    # Use the true average until the exponential average is more correct
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(ema_model.parameters(), model.parameters()):
        ema_param.data.mul_(alpha).add_(param.data, alpha=1 - alpha)


def sigmoid_rampup(current, length):
    phase = 1.0 - min(current, length) / length
    return math.exp(-5.0 * phase * phase)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = make_moons(1200, noise=0.12, random_state=args.seed)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    y = torch.tensor(y)
    labelled = torch.cat([(y[:1000] == c).nonzero()[:15, 0] for c in (0, 1)])

    model, ema_model = create_model(), create_model(ema=True)
    ema_model.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    noise = lambda t: t + 0.1 * torch.randn_like(t)  # noqa: E731
    for global_step in range(args.steps):
        model.train()
        ema_model.train()
        rows, free = labelled[torch.randint(len(labelled), (16,))], torch.randint(1000, (48,))
        class_loss = F.cross_entropy(model(noise(x[rows])), y[rows])
        with torch.no_grad():
            target = F.softmax(ema_model(noise(x[free])), dim=1)
        consistency = F.mse_loss(F.softmax(model(noise(x[free])), dim=1), target)
        loss = class_loss + 5.0 * sigmoid_rampup(global_step, 250) * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema_variables(model, ema_model, 0.98, global_step)
        if global_step % 100 == 0:
            print("step %d class %.4f consistency %.4f" % (global_step, class_loss.item(), consistency.item()))
    ema_model.eval()
    with torch.no_grad():
        print("metric: %.4f" % (ema_model(x[1000:]).argmax(1) == y[1000:]).float().mean().item())
