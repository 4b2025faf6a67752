from __future__ import annotations

from nethook.sinks import tags


def test_tags_say_what_they_are_of():
    assert tags.loss_tag("train.py:42") == "loss/train.py:42"
    assert tags.loss_tag("train.py:57", "eval") == "eval_loss/train.py:57"
    assert tags.scalar_tag("grad_norm") == "scalars/grad_norm"
    assert tags.series_tag("conv1", "outputs", column="std") == "outputs/conv1.std"
    assert tags.series_tag("", "outputs", "eval") == "eval/outputs/(model)"
    assert tags.block_tag("encoder.0", "grad_norm") == "block/encoder.0/grad_norm"
    assert tags.layer_tag("fc.weight", "update_ratio") == "layer/fc.weight/update_ratio"


def test_what_a_tracker_does_not_take_is_replaced():
    assert tags.cleaned("@loss:a[0]/relu#0") == "_loss:a_0_/relu_0"
    assert tags.cleaned("fine-name_1.2: x/y") == "fine-name_1.2: x/y"
