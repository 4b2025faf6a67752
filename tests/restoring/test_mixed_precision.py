"""Mixed precision is set as it was."""

from __future__ import annotations

import torch

from nethook.restoring.mixed_precision import autocast_as, autocast_now


def test_off_and_on():
    assert autocast_now() == {}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        then = autocast_now()
        assert then == {"cpu": "bfloat16"}
        with autocast_as({}):
            assert autocast_now() == {}
        assert autocast_now() == then
    with autocast_as(then):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    assert autocast_now() == {}


def test_another_type():
    with torch.autocast("cpu", dtype=torch.bfloat16), autocast_as({"cpu": "float16"}):
        assert autocast_now() == {"cpu": "float16"}
