"""Doing something once when a backward pass has ended."""

import torch

from nethook.hooks.autograd.backward_end import when_backward_ends


def test_it_is_called_once_after_every_gradient_has_been_added():
    leaf, seen = torch.ones(2, requires_grad=True), []
    inner = leaf * 2
    inner.register_hook(lambda _: when_backward_ends(lambda: seen.append(leaf.grad.tolist())))
    inner.sum().backward()
    assert seen == [[2, 2]]
    (leaf * 5).sum().backward()  # another pass is not concerned
    assert len(seen) == 1
