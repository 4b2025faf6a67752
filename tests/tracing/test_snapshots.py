"""What is kept stays what it was, in the graph where it was in one."""

import pytest
import torch

from nethook.tracing.keep import keep_value, read_value, snapshots


def retain(value, *, clone=False, detach=False):
    return keep_value(snapshots(copy=clone, detach=detach), value)


def note(value):
    return keep_value(snapshots(itself=True), value)


def read(kept):
    return read_value(kept, "it")


@pytest.fixture
def inside():
    leaf = torch.tensor([1.0, -2.0], requires_grad=True)
    return leaf, leaf * 3


def test_a_tensor_in_a_graph_is_the_very_one(inside):
    _, tensor = inside
    assert read(retain(tensor)) is tensor
    assert read(retain([tensor]))[0] is tensor


def test_after_a_write_it_is_a_copy_in_the_same_graph(inside):
    leaf, tensor = inside
    kept = retain((tensor, {"a": tensor}))
    tensor.relu_()
    value, named = read(kept)
    assert value.tolist() == named["a"].tolist() == [3.0, -6.0]
    value.sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("clone", [True, False])
@pytest.mark.parametrize("detach", [True, False])
def test_options(inside, clone, detach):
    _, tensor = inside
    kept = read(retain(tensor, clone=clone, detach=detach))
    assert kept.requires_grad is not detach
    tensor.relu_()
    assert read(retain(tensor)).tolist() == [3.0, 0.0]
    assert clone is False or kept.tolist() == [3.0, -6.0]


def test_containers_are_our_own():
    outputs = [torch.ones(1)]
    kept = retain(outputs)
    outputs.append(None)
    assert len(read(kept)) == 1


def test_a_note_gives_the_very_tensor_back_unless_it_was_written():
    one, two = torch.ones(2), torch.ones(2)
    noted = note((one, two))
    two.zero_()
    first, second = read(noted)
    assert first is one
    assert second.tolist() == [1, 1]


def test_inference_tensors_are_copies():
    with torch.inference_mode():
        tensor = torch.ones(2)
        noted = note(tensor)
        tensor.zero_()
        assert read(noted).tolist() == [1, 1]
