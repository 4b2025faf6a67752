"""Trains models of the zoo for two steps and prints digests of what is saved of each.

`python saving_zoo_program.py ROOT NAME ...`: the folder that `tests` is in, and the exhibits.
"""

import hashlib
import json
import sys

sys.path.insert(0, sys.argv[1])

import torch
from torch.utils.hooks import RemovableHandle

from tests.zoo import EXHIBITS, Given, built, loss_of, quiet
from tests.zoo.observe import seed_everything
from tests.zoo.saved import saved_in_every_way


def digest(saved):
    return hashlib.sha256(saved if isinstance(saved, bytes) else repr(saved).encode()).hexdigest()


def main(exhibit):
    """What is saved before each of two steps, and whether nethook is on the model then."""
    RemovableHandle.next_id = 10_000  # whatever came before, in this process
    alive, model = built(exhibit), built(exhibit)  # see `expected` in test_saving_zoo.py
    found, optimizer = {}, None
    with quiet(exhibit):
        for step in range(2):
            RemovableHandle.next_id = 20_000 * (step + 1)
            seed_everything()
            output = exhibit.call(model, Given())
            if optimizer is None and (known := list(model.parameters())):
                optimizer = torch.optim.SGD(known, 1e-3)
            if exhibit.differentiable:
                loss_of(output).backward()
            found |= {
                f"{way} {step}": digest(each) for way, each in saved_in_every_way(model).items()
            }
            hooks = [hook for each in model.modules() for hook in each._forward_hooks.values()]
            if optimizer is not None and exhibit.differentiable:
                optimizer.step()
                optimizer.zero_grad()
    del alive
    return found, any(type(hook).__module__.startswith("nethook") for hook in hooks)


wanted = sys.argv[2:]
for exhibit in EXHIBITS:
    if exhibit.name in wanted:
        try:
            print(json.dumps([exhibit.name, *main(exhibit)]))
        except Exception as error:
            print(json.dumps([exhibit.name, {"error": type(error).__name__}, False]))
