"""Only encoder.data should be frozen, but I look for "data" in the name, and decoder.data is frozen untrained.

expect: no-gradient
or: optimizer-misses-parameters
line: if submodule_name in name:
source: https://github.com/ecmwf/anemoi-core/pull/1159
metric: test mean squared error relative to the variance, lower is better
"""

import argparse
import logging

import torch
from torch import nn

LOGGER = logging.getLogger(__name__)
logging.basicConfig(level=logging.INFO, format="%(message)s")


class Model(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.encoder = nn.ModuleDict({"data": nn.Sequential(nn.Linear(n_in, n_hidden), nn.Tanh())})
        self.processor = nn.Sequential(nn.Linear(n_hidden, n_hidden), nn.Tanh())
        self.decoder = nn.ModuleDict({"data": nn.Linear(n_hidden, n_out)})

    def forward(self, x):
        return self.decoder["data"](self.processor(self.encoder["data"](x)))


def freeze_submodule_by_name(module, submodule_name):
    for name, parameter in module.named_parameters():
        if submodule_name in name:
            parameter.requires_grad = False
    LOGGER.info("%s successfully frozen", submodule_name)


def weather(n, rule, law):
    x = torch.randn(n, 10)
    return x, torch.tanh(x @ rule) @ law


def fit(model, x, y, epochs, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=lr)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        LOGGER.info("epoch %d loss %.4f", epoch, loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    rule = torch.randn(10, 12) * 0.5

    # pretraining on one region, many variables
    old_law = torch.randn(12, 20) * 0.5
    x, y = weather(1500, rule, old_law)
    pretrained = Model(10, 32, 20)
    fit(pretrained, x, y, epochs=6, lr=5e-3)

    # transfer to another region and eight other variables: new processor and decoder
    new_law = 2.0 * torch.randn(12, 8)
    x, y = weather(1500, rule, new_law)
    model = Model(10, 32, 8)
    model.encoder.load_state_dict(pretrained.encoder.state_dict())
    freeze_submodule_by_name(model, "data")
    fit(model, x, y, epochs=8, lr=5e-3)

    x, y = weather(500, rule, new_law)
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x), y) / y.var()
    print("metric: %.5f" % error.item())


if __name__ == "__main__":
    main()
