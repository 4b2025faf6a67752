"""The training of the self-test repeats itself, and notices a bit."""

from __future__ import annotations

from dataclasses import replace

import torch

from nethook.selftest.training import train


def test_it_repeats_itself_to_the_bit() -> None:
    cpu = torch.device("cpu")
    one, other = train(cpu, 3), train(cpu, 3)
    assert one.equals(other)
    assert one.seconds > 0
    weights = [tensor.clone() for tensor in other.weights]
    weights[0].view(torch.int32).view(-1)[0] ^= 1
    assert not one.equals(replace(other, weights=weights))
    assert len(train(cpu, 4).losses) == 4
