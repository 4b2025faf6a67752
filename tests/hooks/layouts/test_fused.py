"""Running layer by layer what torch would run fused."""

import pytest
import torch
from torch import nn

from nethook.hooks.layouts.fused import layer_by_layer


def test_the_parts_of_an_encoder_layer_are_called_and_then_fused_again() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    called: list[str] = []
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, args, out: called.append(type(module).__name__)
    )
    x = torch.randn(2, 3, 8)
    try:
        with torch.no_grad():
            layer(x)
            assert called == ["TransformerEncoderLayer"]
            with layer_by_layer():
                layer(x)
            assert "Linear" in called
            called.clear()
            layer(x)
            assert called == ["TransformerEncoderLayer"]
    finally:
        handle.remove()


def test_the_switch_is_as_it_was_also_after_an_exception() -> None:
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with layer_by_layer():
            pass
        assert not torch.backends.mha.get_fastpath_enabled()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    with pytest.raises(ZeroDivisionError), layer_by_layer():
        1 / 0
    assert torch.backends.mha.get_fastpath_enabled()
