"""The networks of these tests, each small and odd in one way."""

from __future__ import annotations

import torch
from torch import nn


class Small(nn.Module):
    """Two blocks and a head; a parameter and a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
        self.block2 = nn.Sequential(nn.Conv2d(2, 2, 3), nn.ReLU())
        self.absent: nn.Module | None = None
        self.register_module("nothing", None)
        self.fc1 = nn.Linear(4, 3)
        self.fc2 = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("unset", None)


class Shared(nn.Module):
    """A block under two names, and a layer of it under a third."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        self.decoder = self.encoder
        self.extra = nn.ModuleDict({"inner": self.encoder[0]})


class Tied(nn.Module):
    """An embedding whose weight is that of the head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 2)
        self.head = nn.Linear(2, 4)
        self.head.weight = self.embed.weight


class Diamonds(nn.Module):
    """A shared child below a shared child below a shared parent."""

    def __init__(self) -> None:
        super().__init__()
        leaf = nn.Linear(1, 1)
        middle = nn.ModuleDict({"p": leaf, "q": leaf})
        self.left = nn.ModuleDict({"a": middle, "b": middle})
        self.right = self.left
        self.own = leaf


class Cycle(nn.Module):
    """A child that has its parent as a child."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Module()
        self.one.fc = nn.Linear(1, 1)
        self.one.back = self
        self.two = nn.Module()
        self.two.one = self.one
        self.one.two = self.two


def odd_names() -> nn.ModuleDict:
    """Names with every character that means something in a pattern, and a few more."""
    return nn.ModuleDict({name: nn.Linear(1, 1) for name in ODD})


ODD = (
    "a/b", "a#1", "a*b", "a**", "a?b", "a[0]", "a0", "a{b,c}", "ab", "a\\b", "a\\*b", "a b", "a\nb",
    "ä層😀", "]", "}", "!", "\\",
)  # fmt: skip
