"""The batches that data loaders hand out."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset

from nethook.hooks.hook import Owner
from nethook.hooks.process.loaders import LoaderBatches, LoaderStarts


def test_each_batch_is_told_until_it_is_taken_off():
    data = TensorDataset(torch.arange(10))
    told: list[tuple[int, bool, int]] = []
    sets = []

    def seen_one(sampler, dataset, collated, batch):
        told.append((sampler.batch_size, collated, len(batch[0])))
        sets.append(dataset)

    handle = LoaderBatches(Owner("test"), seen_one)
    plain = [batch[0].tolist() for batch in DataLoader(data, 4)]
    handle.put_on()
    try:
        seen = [batch[0].tolist() for batch in DataLoader(data, 4)]
    finally:
        handle.remove()
    assert seen == plain
    assert told == [(4, True, 4), (4, True, 4), (4, True, 2)]
    assert all(one is data for one in sets)
    list(DataLoader(data, 4))
    assert len(told) == 3


def test_a_dead_owner_is_told_nothing():
    owner, told = Owner("test"), []
    handle = LoaderBatches(owner, lambda *given: told.append(given))
    handle.put_on()
    owner.alive = False
    try:
        list(DataLoader(TensorDataset(torch.arange(4)), 2))
    finally:
        handle.remove()
    assert told == []


def test_each_start_is_told_and_the_class_is_as_it_was():
    data, before = TensorDataset(torch.arange(10)), vars(DataLoader)["__iter__"]
    owner, told = Owner("test"), []
    handle = LoaderStarts(owner, told.append)
    handle.put_on()
    loader = DataLoader(data, 4)
    try:
        assert [len(batch[0]) for _ in range(2) for batch in loader] == [4, 4, 2] * 2
        assert told == [loader, loader]
        owner.alive = False
        list(loader)
    finally:
        handle.remove()
    list(loader)
    assert told == [loader, loader]
    assert vars(DataLoader)["__iter__"] is before
