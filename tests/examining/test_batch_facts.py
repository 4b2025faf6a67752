"""What is known of a batch."""

from __future__ import annotations

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
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


def test_samplers_of_the_script_may_draw_anything():
    data = TensorDataset(torch.randn(70, 3))

    class Groups:
        """Goes through batches, and holds a sampler of groups."""

        def __init__(self, sampler):
            self.sampler = sampler

        def __iter__(self):
            return ([7 * group, 7 * group + 1] for group in self.sampler)

    class Buckets(BatchSampler):
        def __iter__(self):
            return ([bucket, bucket + 1] for bucket in self.sampler)

    class OfClasses(WeightedRandomSampler):
        def __iter__(self):
            return (10 * label for label in super().__iter__())

    for batches in (
        Groups(WeightedRandomSampler([0.5, 0.5], 10)),
        Buckets(WeightedRandomSampler([0.5, 0.5], 10), 2, False),
    ):
        facts = of(DataLoader(data, batch_sampler=batches))
        assert (facts.samples, facts.within_reach, facts.shuffled) == (None, None, True)
    drawn = of(DataLoader(data, 4, sampler=OfClasses([0.5, 0.5], 10)))
    assert (drawn.samples, drawn.within_reach, drawn.shuffled) == (None, None, True)
    ordered = of(DataLoader(data, batch_sampler=Groups(SequentialSampler(range(10)))))
    assert (ordered.samples, ordered.shuffled) == (None, None)
    plain = of(DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 5, False)))
    assert plain == LoaderFacts(5, True, True, 70)
