"""A flag says where, in which step and phase."""

from __future__ import annotations

import dataclasses

import pytest

from nethook.watching.flight.flag import Flag


def test_it_holds_tensors_only_while_the_call_is_under_way():
    flag = Flag("fc", "outputs", 3, "train")
    assert (flag.module, flag.inputs, flag.value) == (None, None, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        flag.step = 4
