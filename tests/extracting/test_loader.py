"""Where batches come from: the order of a sampler, followed and begun in the middle."""

import hashlib

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

from nethook.errors import OptionError, ResumeError
from nethook.extracting.loader import ListSource, SampledSource, Source, find_source, fold

DATA = TensorDataset(torch.arange(10))


def shuffled(seed=3):
    return DataLoader(
        DATA, batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(seed)
    )


def taken(source, skip=0, order=""):
    return [
        (delivery.batch[0].tolist(), delivery.numbers, delivery.order)
        for delivery in source.iterate(skip, order)
    ]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


class OwnLoader(DataLoader):
    def __iter__(self):
        return iter([torch.zeros(1)])


def test_the_kind_of_source_follows_from_the_loader():
    assert type(find_source(shuffled(), 1)) is SampledSource
    assert type(find_source([1], 1)) is type(find_source((1,), 1)) is ListSource
    for loader in (iter([1]), DataLoader(Stream()), OwnLoader(DATA)):
        assert type(find_source(loader, 1)) is Source
    for wrong in (torch.ones(3), "text", {"x": 1}, 3):
        with pytest.raises(OptionError, match=r"`loader` must be .* For a single batch, write"):
            find_source(wrong, 1)


def test_a_sampler_is_followed_and_its_loader_gives_what_it_gave():
    source = find_source(shuffled(), 1)
    assert (source.samples, source.batches, source.batch_size, source.numbered) == (10, 4, 3, True)
    batches = taken(source)
    by_torch = [batch[0].tolist() for batch in shuffled()]
    assert [values for values, _, _ in batches] == by_torch
    assert [numbers for _, numbers, _ in batches] == by_torch  # sample i holds the number i


def test_the_order_is_one_running_hash():
    order = ""
    for numbers in ([4, 1], torch.tensor([0, 3])):
        plain = [int(number) for number in numbers]
        expected = hashlib.sha256(f"{order}{plain!r}".encode()).hexdigest()
        order = fold(order, numbers)
        assert order == expected


def test_an_extraction_is_begun_in_the_middle_of_the_same_order():
    whole = taken(find_source(shuffled(), 1))
    rest = taken(find_source(shuffled(), 1), skip=2, order=whole[1][2])
    assert rest == whole[2:]
    with pytest.raises(ResumeError, match=r"in another order now, .*manual_seed\(0\)"):
        taken(find_source(shuffled(seed=4), 1), skip=2, order=whole[1][2])
    with pytest.raises(ResumeError, match="9 batches are done, and the loader has fewer"):
        taken(find_source(shuffled(), 1), skip=9, order=whole[1][2])


def test_a_list_goes_on_anywhere_and_an_iterator_nowhere():
    batches = list(torch.arange(6).split(2))
    assert [int(one.batch[0]) for one in find_source(batches, 1).iterate(1, "")] == [2, 4]
    with pytest.raises(ResumeError, match=r"2 batches are done, .* a list_iterator can only be"):
        list(find_source(iter(batches), 1).iterate(2, ""))
    with pytest.raises(ResumeError, match="an IterableDataset, whose order nobody knows"):
        list(find_source(DataLoader(Stream()), 1).iterate(1, ""))
    with pytest.raises(ResumeError, match="OwnLoader iterates in a way of its own"):
        list(find_source(OwnLoader(DATA), 1).iterate(1, ""))


def test_several_processes_need_a_sampler_that_divides():
    sampler = DistributedSampler(DATA, 2, 1, shuffle=False)
    source = find_source(DataLoader(DATA, batch_size=2, sampler=sampler), 2)
    assert [numbers for _, numbers, _ in taken(source)] == [[1, 3], [5, 7], [9]]
    with pytest.raises(OptionError, match=r"each of the 2 processes its own .* shuffle=False\)\."):
        find_source(shuffled(), 2)
    with pytest.raises(OptionError, match=r"where 2 processes extract together; got list\."):
        find_source([1], 2)
