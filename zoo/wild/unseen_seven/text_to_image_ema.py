"""An average of weights beside noisy training: each step overwrites the decay from which the next is computed, and it falls to one half.

expect: averaging-too-short
line: self.decay = self.get_decay(self.optimization_step)
source: https://github.com/huggingface/diffusers/issues/1864
metric: test error of the averaged model, lower is better
"""

import argparse
import copy

import torch
import torch.nn as nn


class EMAModel:
    """Exponential moving average of a model's parameters."""

    def __init__(self, parameters, decay=0.999):
        self.shadow_params = [p.clone().detach() for p in parameters]
        self.decay = decay
        self.optimization_step = 0

    def get_decay(self, optimization_step):
        value = (1 + optimization_step) / (10 + optimization_step)
        return 1 - min(self.decay, value)

    @torch.no_grad()
    def step(self, parameters):
        self.optimization_step += 1
        self.decay = self.get_decay(self.optimization_step)
        for s_param, param in zip(self.shadow_params, parameters):
            tmp = self.decay * (s_param - param)
            s_param.sub_(tmp)

    def copy_to(self, parameters):
        for s_param, param in zip(self.shadow_params, parameters):
            param.data.copy_(s_param.data)


def waves(n, noise):
    x = torch.rand(n, 2) * 4 - 2
    y = torch.sin(2 * x[:, :1]) * torch.cos(x[:, 1:])
    return x, y + noise * torch.randn_like(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-train-steps", type=int, default=3000)
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--train-batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = nn.Sequential(
        nn.Linear(2, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
    )
    ema = EMAModel(model.parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
    x_test, y_test = waves(2000, 0.0)
    for step in range(args.max_train_steps):
        x, y = waves(args.train_batch_size, 0.5)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.step(model.parameters())
        if step % 500 == 0:
            print({"step": step, "train_loss": round(loss.item(), 4), "lr": args.learning_rate})
    averaged = copy.deepcopy(model)
    ema.copy_to(averaged.parameters())
    with torch.no_grad():
        print("last:", nn.functional.mse_loss(model(x_test), y_test).item())
        print("metric:", nn.functional.mse_loss(averaged(x_test), y_test).item())


if __name__ == "__main__":
    main()
