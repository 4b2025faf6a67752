"""Options of its own that are called like those of others: --to, --name, --budget, -m, --help."""

import argparse
import sys

import torch
from torch import nn

from utils import blobs, checksum

parser = argparse.ArgumentParser()
parser.add_argument("--to", default="nowhere")
parser.add_argument("--name", required=True)
parser.add_argument("--budget", type=float, default=1.0)
parser.add_argument("--quiet", action="store_true")
parser.add_argument("-m", "--momentum", type=float, default=0.0)
parser.add_argument("rest", nargs="*")
args = parser.parse_args()
print(args)
print(parser.prog, sys.argv[1:])

torch.manual_seed(15)
x, y = blobs(64)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=args.momentum)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"{args.name} {step} {loss.item():.6f}")
print("weights", checksum(model))
