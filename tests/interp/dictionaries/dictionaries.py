"""Dictionaries of the makes that are spliced: as small as they can be."""

from typing import NamedTuple

import torch
from torch import nn


class SAE(nn.Module):
    """Of SAELens' and dictionary_learning's make: encode gives features."""

    def __init__(self, width=8, features=24, seed=0):
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.W_enc = nn.Parameter(torch.randn(width, features, generator=random).double())
        self.W_dec = nn.Parameter(torch.randn(features, width, generator=random).double() / 5)
        self.b_dec = nn.Parameter(torch.randn(width, generator=random).double())

    def encode(self, x):
        return torch.relu((x - self.b_dec) @ self.W_enc)

    def decode(self, features):
        return features @ self.W_dec + self.b_dec


class Encoded(NamedTuple):
    top_acts: torch.Tensor
    top_indices: torch.Tensor


class Sparse(SAE):
    """Of sparsify's make: encode gives the k largest, decode takes them."""

    num_latents = 24

    def encode(self, x):
        return Encoded(*super().encode(x).topk(4, -1))

    def decode(self, acts, indices):
        dense = torch.zeros(*acts.shape[:-1], 24, dtype=acts.dtype).scatter(-1, indices, acts)
        return super().decode(dense)


class Pair(SAE):
    """Of overcomplete's make: encode gives what came before the activation as well."""

    def encode(self, x):
        before = (x - self.b_dec) @ self.W_enc
        return before, torch.relu(before)


class Rotation:
    """An orthonormal dictionary that is no module: it rebuilds every value."""

    def __init__(self, width=8):
        self.q = torch.linalg.qr(torch.randn(width, width, dtype=torch.double)).Q

    def encode(self, x):
        return x @ self.q

    def decode(self, features):
        return features @ self.q.T


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 2)).double()
