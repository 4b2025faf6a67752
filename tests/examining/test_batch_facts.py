"""What is known of a batch."""

from __future__ import annotations

import torch
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from nethook.addresses.inputs import Inputs
from nethook.examining.batch_facts import LoaderFacts, facts_of, loader_facts
from nethook.torch_private import collates, dataset_of_loader, sampler_of_loader


def of(loader: DataLoader) -> LoaderFacts:
    iterator = iter(loader)
    return loader_facts(
        sampler_of_loader(iterator), collates(iterator), dataset_of_loader(iterator)
    )


def test_sizes_and_tokens():
    inputs = Inputs(
        (torch.zeros(4, 7, dtype=torch.long), torch.ones(4, 3)), {"mask": torch.ones(4, 7).bool()}
    )
    facts = facts_of(inputs)
    assert facts.size == 4
    assert facts.batch_dim == 0
    assert facts.sizes == (4,)
    assert [[str(step) for step in path] for path in facts.tokens] == [["[0]", "[0]"]]
    assert not facts.rows_are_samples


def test_inputs_that_differ_have_no_common_size():
    facts = facts_of(Inputs((torch.ones(4, 3), torch.ones(5))))
    assert facts.size == 0
    assert facts.batch_dim is None


def test_a_smaller_last_batch_is_no_change_of_size():
    inputs = Inputs((torch.ones(4, 3),))
    assert not facts_of(inputs, (8, 8, 4)).changes_size
    assert facts_of(inputs, (8, 6, 4)).changes_size


def test_loaders():
    data = TensorDataset(torch.randn(10, 3))
    assert of(DataLoader(data, 4, shuffle=True)) == LoaderFacts(4, True, True, 10)
    assert of(DataLoader(data, 4)) == LoaderFacts(4, True, False, 10)
    assert not of(DataLoader(data, None)).collated

    class Stream(IterableDataset):
        def __iter__(self):
            yield torch.ones(3)

    assert of(DataLoader(Stream(), 4)).collated
    assert of(DataLoader(Stream(), 4)).shuffled is None
    facts = facts_of(Inputs((torch.ones(4, 3),)), loader=of(DataLoader(data, 4)))
    assert facts.rows_are_samples


def test_samples_that_a_sampler_can_draw():
    data = TensorDataset(torch.randn(10, 3))

    def reach(sampler, data=data):
        facts = of(DataLoader(data, 4, sampler=sampler))
        return facts.within_reach, facts.samples

    assert reach(WeightedRandomSampler([0.5, 0.5], 10)) == (2, 10)
    assert reach(WeightedRandomSampler(torch.ones(10), 4)) == (10, 10)
    assert reach(WeightedRandomSampler([0.0] * 9 + [1.0], 4)) == (10, 10)  # chosen on purpose
    assert reach(SubsetRandomSampler([0, 1])) == (None, None)

    class NoLength:
        def __getitem__(self, at):
            return torch.ones(3)

    assert reach(WeightedRandomSampler([0.5, 0.5], 10), NoLength()) == (2, None)
