"""Training is interrupted: model, optimizer, scheduler and step go into a checkpoint, and a new process-like run goes on from it.

expect: nothing
style: save and resume with new objects in one script, state dicts through a buffer
metric: squared error on test data, lower is better
"""

import argparse
import io

import torch
import torch.nn as nn


def build():
    model = nn.Sequential(nn.Linear(6, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=600)
    return model, optimizer, scheduler


def batch(n=64):
    x = torch.rand(n, 6) * 2 - 1
    y = torch.sin(3 * x[:, :1]) + x[:, 1:2] * x[:, 2:3] + (x[:, 3:4] > 0) * x[:, 4:5]
    return x, y


def train(state, until):
    model, optimizer, scheduler = build()
    start = 0
    if state is not None:
        state.seek(0)
        saved = torch.load(state, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        start = saved["step"]
        print("=> resumed at step", start)
    model.train()
    for step in range(start, until):
        x, y = batch()
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print("step", step, "loss", loss.item(), "lr", scheduler.get_last_lr()[0])
    out = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "step": until}, out)
    return model, out


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    _, checkpoint = train(None, 300)
    model, _ = train(checkpoint, 600)
    model.eval()
    with torch.no_grad():
        x, y = batch(2000)
        print("metric:", nn.functional.mse_loss(model(x), y).item())
