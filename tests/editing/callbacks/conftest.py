"""A small network, callbacks on it, and a batch."""

import pytest
import torch

import nethook
from tests.editing.callbacks.net import Net


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def cb(model):
    return nethook.Callbacks(model)


@pytest.fixture
def x():
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
