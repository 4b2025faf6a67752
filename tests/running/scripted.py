"""A class for TorchScript, which looks for names in the frame that calls `torch.jit.script`.

Annotations must be types here, not texts.
"""

import torch


def scripted_class():
    @torch.jit.script
    def triple(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    class Pair:
        def __init__(self, factor: int):
            self.factor = factor

        def times(self, x: torch.Tensor) -> torch.Tensor:
            return triple(x) * self.factor

    return torch.jit.script(Pair)
