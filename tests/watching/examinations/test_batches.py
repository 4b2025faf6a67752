"""What is seen of batches."""

from __future__ import annotations

import torch
from torch.utils.data import BatchSampler, RandomSampler

from nethook.addresses.inputs import Inputs
from nethook.watching.examinations.batches import MOST, SAME, SeenBatches


def test_sizes():
    seen = SeenBatches()
    for size in range(1, MOST + 5):
        seen.called((torch.ones(size, 2),), {})
    assert len(seen.sizes) == MOST
    assert seen.sizes[-1] == MOST + 4


def test_the_same_batch_each_time():
    seen, x = SeenBatches(), torch.randn(4, 2)
    seen.called((x,), {})
    assert seen.repeats is None
    seen.called((x.clone(),), {})
    assert seen.repeats is True
    seen.called((torch.randn(4, 2),), {})
    seen.called((x,), {})
    assert seen.repeats is False


def test_large_batches_are_told_apart_by_identity():
    seen, x = SeenBatches(), torch.zeros(SAME + 1)
    seen.called((x,), {})
    seen.called((x.clone(),), {})
    assert seen.repeats is False


def test_a_loader_that_has_handed_one_out():
    seen, x = SeenBatches(), torch.randn(4, 2)
    seen.loaded(BatchSampler(RandomSampler(range(9)), 4, False), True)
    seen.called((), {"x": x})
    facts = seen.facts(Inputs((), {"x": x}), 2)
    assert facts.rows_are_samples
    assert facts.loader.shuffled
    assert facts.calls == 2
    seen.called((x,), {})  # this one came from elsewhere
    assert not seen.facts(Inputs((x,)), 1).rows_are_samples


def test_a_call_without_tensors():
    seen = SeenBatches()
    seen.called((3,), {})
    assert seen.sizes == []
