"""`extract`: what is stored, what a batch may be, what a resumed extraction takes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    TensorDataset,
)

import nethook
from nethook.errors import (
    FeaturesError,
    FeaturesExistError,
    FeatureShapeError,
    InputsError,
    NoSuchFeaturesError,
    OptionError,
    ResumeError,
)
from nethook.extracting import shard_writer
from nethook.extracting.fingerprint import fingerprint
from nethook.extracting.loader import find_source

X = torch.randn(23, 8, generator=torch.Generator().manual_seed(0))
Y = torch.arange(23) % 5
DATA = TensorDataset(X, Y)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 6), nn.Dropout(0.5), nn.Tanh(), nn.Linear(6, 3))


def loader(data: Dataset = DATA, **options) -> DataLoader:
    return DataLoader(data, **{"batch_size": 4, **options})


def by_hand(model: nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model[2](model[0](X))


@pytest.fixture
def model():
    return network()


class Broken(Exception):
    pass


def interrupted(model, to, data=DATA, after=13, **options):
    """An extraction whose data breaks after some samples; one batch a shard is written."""

    class Breaks(Dataset):
        def __len__(self):
            return len(data)

        def __getitem__(self, row):
            self.seen = getattr(self, "seen", 0) + 1
            if self.seen > after:
                raise Broken
            return data[row]

    with pytest.raises(Broken):
        nethook.extract(model, loader(Breaks(), **options), at="2", to=to, shard_mb=1e-5)


def test_what_is_stored(model, tmp_path):
    model.train()
    done = nethook.extract(model, loader(), at=["2", "3"], to=tmp_path / "f", shard_mb=0.0005)
    assert all(module.training for module in model.modules())
    assert (done.rows, done.resumed, done.complete) == (23, 0, True)
    assert done.shards > 2
    assert done.to_dict() == {
        "folder": str(tmp_path / "f"), "rows": 23, "resumed": 0, "shards": done.shards,
        "bytes": done.bytes, "complete": True,
    }  # fmt: skip
    assert json.loads((tmp_path / "f" / "index.json").read_text())["order"] == "stored"
    data = done.load()
    torch.testing.assert_close(data.tensor("2"), by_hand(model))
    assert torch.equal(data.labels, Y)
    assert torch.equal(data.ids, torch.arange(23))
    # The files are safetensors, whoever reads them.
    files = sorted((tmp_path / "f").glob("*.safetensors"))
    assert sum(file.stat().st_size for file in files) == done.bytes
    parts = []
    for file in files:
        with safe_open(file, framework="pt") as opened:
            assert set(opened.keys()) == {"features:2", "features:3", "labels", "index"}
            assert json.loads(opened.metadata()["nethook_features"])["version"] == 1
            parts.append(opened.get_tensor("features:2"))
    assert torch.equal(torch.cat(parts), data.tensor("2"))
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == [
        "index.json",
        *(f"rank-00000-shard-{number:05}.safetensors" for number in range(len(files))),
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e5m2, torch.float64])
def test_types_survive(model, dtype, tmp_path):
    nethook.extract(model, loader(), at="2", to=tmp_path, dtype=dtype, shard_mb=0.0003)
    found = nethook.load_features(tmp_path).tensor("2")
    assert found.dtype is dtype
    wanted = torch.cat([nethook.features(model, x, at="2") for x, _ in loader()]).to(dtype)
    assert torch.equal(found.view(torch.uint8), wanted.view(torch.uint8))


def test_pool_and_transform(tmp_path):
    tokens = torch.randn(6, 5, 8)
    model = nn.Sequential(nn.Identity())
    nethook.extract(
        model, [tokens], at="0", to=tmp_path, pool="mean", transform=lambda t: t[:, :3].double()
    )
    found = nethook.load_features(tmp_path).tensor("0")
    assert torch.equal(found, tokens.mean(1)[:, :3].double())


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_are_in_the_order_of_the_data_set(model, workers, tmp_path):
    shuffled = loader(shuffle=True, num_workers=workers)
    nethook.extract(model, shuffled, at="2", to=tmp_path, shard_mb=0.0003)
    data = nethook.load_features(tmp_path)
    torch.testing.assert_close(data.tensor("2"), by_hand(model))
    assert torch.equal(data.labels, Y)
    assert torch.equal(data.numbers, torch.arange(23))
    assert len(data._shards) > 1
    torch.testing.assert_close(data[7][0], by_hand(model)[7])


def test_a_sample_that_is_drawn_twice_is_there_twice(model, tmp_path):
    rows = [3, 3, 1, 9, 3]
    nethook.extract(model, loader(sampler=rows), at="2", to=tmp_path)
    data = nethook.load_features(tmp_path)
    assert data.numbers.tolist() == [1, 3, 3, 3, 9]
    torch.testing.assert_close(data.tensor("2"), by_hand(model)[[1, 3, 3, 3, 9]])


def test_a_view_does_not_keep_what_lies_behind_it_alive(tmp_path, monkeypatch):
    held = []
    add = shard_writer.Writer.add

    def noted(self, found, batch, delivery):
        rows = add(self, found, batch, delivery)
        held.append(self._parts[-1]["features:0"].untyped_storage().nbytes())
        return rows

    monkeypatch.setattr(shard_writer.Writer, "add", noted)
    nethook.extract(nn.Sequential(nn.Identity()), [torch.ones(2, 500, 4)], at="0", to=tmp_path,
                    pool="cls")  # fmt: skip
    assert held == [2 * 4 * 4]


# -- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "split"),
    [
        (X, None),
        ((X,), None),
        ([X, Y], None),
        ((X, Y, [f"é{i}" for i in range(23)]), None),
        ({"input": X}, None),
        ({"input": X, "label": Y}, None),
        ({"input": X, "labels": Y.tolist(), "ids": torch.arange(23) + 100}, None),
        (nethook.inputs(X), None),
        ([[X], Y], None),
        ((Y, "other", X, "more"), lambda batch: (batch[2], batch[0])),
        ({"pixels": X, "y": Y}, lambda batch: {"input": batch["pixels"], "labels": batch["y"]}),
        ((X, [str(int(y)) for y in Y]), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_batches_of_every_form(model, batch, split, tmp_path):
    nethook.extract(model, [batch], at="2", to=tmp_path, split=split)
    data = nethook.load_features(tmp_path)
    torch.testing.assert_close(data.tensor("2"), by_hand(model))
    if isinstance(data.labels, list):
        assert data.labels == [str(int(y)) for y in Y]
    elif data.labels is not None:
        assert torch.equal(data.labels, Y)
    given = isinstance(batch, tuple) and len(batch) == 3
    if given:
        assert data.ids == [f"é{i}" for i in range(23)]
    elif isinstance(batch, dict) and "ids" in batch:
        assert torch.equal(data.ids, torch.arange(23) + 100)
    else:
        assert torch.equal(data.ids, torch.arange(23))


@pytest.mark.parametrize(
    ("batch", "split", "said"),
    [
        ((X, Y, Y, Y), None, "`loader` must give a tensor, .* got a tuple of 4"),
        (17, None, "`loader` must give .* got a 17"),
        (X, lambda _: None, "`split` must return a tensor, .* got a None"),
        ({"input": X, "label": Y, "labels": Y}, None, "both 'labels' and 'label'"),
        ((X, {"a": 1}), None, "`labels` must be a tensor, a list of numbers or a list of texts"),
        ((X, Y, [object()] * 23), None, "`ids` must be a tensor, .* got list of object"),
        (("text", Y), None, "`inputs` must be a tensor"),
    ],
)
def test_batches_of_no_form(model, batch, split, said, tmp_path):
    with pytest.raises(InputsError, match=said):
        nethook.extract(model, [batch], at="2", to=tmp_path, split=split)
    assert list(tmp_path.iterdir()) == []


def test_a_batch_that_is_no_loader(model, tmp_path):
    with pytest.raises(OptionError, match=r"`loader` must be a DataLoader .* write \[batch\]"):
        nethook.extract(model, X, at="2", to=tmp_path)
    with pytest.raises(InputsError, match="the loader gave no batch"):
        nethook.extract(model, [], at="2", to=tmp_path)


# -- shapes ---------------------------------------------------------------------------------------


def test_rows_must_be_alike(tmp_path):
    model = nn.Sequential(nn.Identity())
    batches = [torch.ones(2, 5, 3), torch.ones(2, 7, 3)]
    with pytest.raises(FeatureShapeError) as caught:
        nethook.extract(model, batches, at="0", to=tmp_path)
    assert str(caught.value) == (
        "'0' is float32 (5, 3) for the samples so far, and float32 (7, 3) in batch 1; all rows "
        "must be alike. Pool what differs in length (pool='mean'), or pad every batch to one "
        "length."
    )
    # Asked again, rightly, in the same folder.
    nethook.extract(model, batches, at="0", to=tmp_path, pool="mean")
    with pytest.raises(FeatureShapeError, match="batch 1 lacks 'labels'"):
        nethook.extract(model, [(X, Y), X], at="0", to=tmp_path / "b")


def test_the_first_dimension_is_the_sample(tmp_path):
    model = nn.Sequential(nn.LSTM(8, 4))
    data = TensorDataset(torch.randn(6, 5, 8))
    with pytest.raises(FeatureShapeError, match="have 5 rows in a batch of 3 samples"):
        nethook.extract(
            model, loader(data, batch_size=3), at={"0": "[0]"}, to=tmp_path,
            split=lambda batch: batch[0].transpose(0, 1),
        )  # fmt: skip
    nethook.extract(
        model, loader(data, batch_size=3), at={"0": "[0]"}, to=tmp_path,
        split=lambda batch: batch[0].transpose(0, 1), transform=lambda t: t.transpose(0, 1),
    )  # fmt: skip
    assert nethook.load_features(tmp_path).tensor("0").shape == (6, 5, 4)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda t: t.to("meta"), "on the meta device"),
        (lambda t: t.to_sparse(), "sparse or nested"),
        (lambda t: t.to(torch.complex128), "of type torch.complex128"),
        (lambda t: t.sum(), "a single number"),
    ],
)
def test_what_cannot_be_stored(model, make, said, tmp_path):
    with pytest.raises(FeatureShapeError, match=said):
        nethook.extract(model, [X], at="2", to=tmp_path, transform=make)


# -- going on -------------------------------------------------------------------------------------


def test_an_interrupted_extraction_goes_on(model, tmp_path):
    interrupted(model, tmp_path)
    with pytest.raises(NoSuchFeaturesError, match=r"has not ended. Call nethook.extract again"):
        nethook.load_features(tmp_path)

    asked = []

    class Noted(TensorDataset):
        def __getitem__(self, row):
            asked.append(row)
            return super().__getitem__(row)

    done = nethook.extract(model, loader(Noted(X, Y)), at="2", to=tmp_path, shard_mb=1e-5)
    assert (done.resumed, done.rows) == (12, 23)
    assert asked == list(range(12, 23))  # not loaded, let alone computed
    torch.testing.assert_close(done.load().tensor("2"), by_hand(model))
    again = nethook.extract(model, loader(Noted(X, Y)), at="2", to=tmp_path)
    assert again.resumed == again.rows == 23
    assert asked == list(range(12, 23))


def test_control_c_keeps_what_is_done(model, tmp_path):
    class Stops(TensorDataset):
        def __getitem__(self, row):
            if row == 9:
                raise KeyboardInterrupt
            return super().__getitem__(row)

    with pytest.raises(KeyboardInterrupt):
        nethook.extract(model, loader(Stops(X, Y)), at="2", to=tmp_path)  # a shard of 256 MB
    assert nethook.extract(model, loader(), at="2", to=tmp_path).resumed == 8


def test_a_shard_is_written_after_some_time_although_it_is_not_full(model, tmp_path, monkeypatch):
    monkeypatch.setattr(shard_writer, "LONGEST", -1.0)
    assert nethook.extract(model, loader(), at="2", to=tmp_path).shards == 6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": network(1)}, "the model: its layers or its weights"),
        ({"model": nn.Sequential(*network(), nn.ReLU())}, "the model: its layers"),
        ({"data": TensorDataset(X[:20], Y[:20])}, r"the number of samples \(23 then, 20 now\)"),
        ({"batch_size": 5}, r"the batch size \(4 then, 5 now\)"),
        ({"at": "0"}, r"the sites \(\['2'\] then, \['0'\] now\)"),
        ({"dtype": torch.float16}, r"dtype \(None then, torch.float16 now\)"),
        ({"pool": "mean"}, r"pool \(None then, mean now\)"),
        ({"transform": torch.Tensor.abs}, "transform"),
    ],
    ids=["weights", "layers", "data", "batch", "sites", "dtype", "pool", "transform"],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_change_is_refused(model, change, said, whole, tmp_path):
    if whole:
        nethook.extract(model, loader(), at="2", to=tmp_path)
    else:
        interrupted(model, tmp_path)
    options = dict(change)
    other = options.pop("model", model)
    batches = loader(options.pop("data", DATA), batch_size=options.pop("batch_size", 4))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ResumeError, match=said):
        nethook.extract(other, batches, **{"at": "2", "to": tmp_path, **options})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_order_is_refused(model, tmp_path):
    torch.manual_seed(0)
    interrupted(model, tmp_path, shuffle=True)
    with pytest.raises(ResumeError, match=r"another order now.*manual_seed\(0\)"):
        nethook.extract(model, loader(shuffle=True), at="2", to=tmp_path)
    with pytest.raises(ResumeError, match="a list, must give the same order"):
        nethook.extract(model, loader(sampler=[*range(22, -1, -1)]), at="2", to=tmp_path)
    with pytest.raises(ResumeError, match="another order"):
        nethook.extract(model, loader(), at="2", to=tmp_path)
    short = loader(sampler=list(range(4)))
    with pytest.raises(ResumeError, match="3 batches are done, and the loader has fewer"):
        nethook.extract(model, short, at="2", to=tmp_path)


def test_a_seeded_order_is_repeated(model, tmp_path):
    def seeded():
        return {"shuffle": True, "generator": torch.Generator().manual_seed(7)}

    interrupted(model, tmp_path, **seeded())
    done = nethook.extract(model, loader(**seeded()), at="2", to=tmp_path)
    assert done.resumed == 12
    data = done.load()
    assert torch.equal(data.numbers, torch.arange(23))
    torch.testing.assert_close(data.tensor("2"), by_hand(model))


class Stream(IterableDataset):
    def __iter__(self):
        yield from DATA


def test_a_stream_is_extracted_and_cannot_go_on(model, tmp_path):
    nethook.extract(model, loader(Stream()), at="2", to=tmp_path / "a")
    torch.testing.assert_close(nethook.load_features(tmp_path / "a").tensor("2"), by_hand(model))
    nethook.extract(model, (batch for batch in loader()), at="2", to=tmp_path / "b")
    torch.testing.assert_close(nethook.load_features(tmp_path / "b").tensor("2"), by_hand(model))

    def breaks():
        yield X
        raise Broken

    with pytest.raises(Broken):
        nethook.extract(model, breaks(), at="2", to=tmp_path / "c")
    with pytest.raises(ResumeError, match="a generator can only be iterated from its start"):
        nethook.extract(model, (each for each in [X]), at="2", to=tmp_path / "c")
    first = loader(Stream())

    class Once(Stream):
        def __iter__(self):
            yield from list(DATA)[:9]
            raise Broken

    with pytest.raises(Broken):
        nethook.extract(model, loader(Once()), at="2", to=tmp_path / "d")
    with pytest.raises(ResumeError, match="an IterableDataset, whose order nobody knows"):
        nethook.extract(model, first, at="2", to=tmp_path / "d")


def test_a_list_of_batches_goes_on(model, tmp_path):
    good = [*X.split(6)]
    with pytest.raises(RuntimeError):
        nethook.extract(model, [*good[:2], torch.ones(1, 9), good[3]], at="2", to=tmp_path)
    done = nethook.extract(model, good, at="2", to=tmp_path)
    assert done.resumed == 12
    torch.testing.assert_close(done.load().tensor("2"), by_hand(model))


def test_data_that_come_in_batches_of_their_own(model, tmp_path):
    sampler = torch.utils.data.BatchSampler(range(23), 4, drop_last=False)

    class Fetched(Dataset):
        def __len__(self):
            return 23

        def __getitem__(self, rows):
            return X[rows], Y[rows]

    batches = DataLoader(Fetched(), sampler=sampler, batch_size=None)
    done = nethook.extract(model, batches, at="2", to=tmp_path)
    assert torch.equal(done.load().labels, Y)
    torch.testing.assert_close(done.load().tensor("2"), by_hand(model))


def test_features_are_never_overwritten(model, tmp_path):
    nethook.extract(model, loader(), at="2", to=tmp_path, resume=False)
    with pytest.raises(FeaturesExistError, match="never overwritten"):
        nethook.extract(model, loader(), at="2", to=tmp_path, resume=False)
    with pytest.raises(OptionError, match="`shard_mb` must be a positive number"):
        nethook.extract(model, loader(), at="2", to=tmp_path, shard_mb=0)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FeaturesError, match="cannot be made"):
        nethook.extract(model, loader(), at="2", to=file)


def test_two_at_once_are_refused(model, tmp_path):
    with shard_writer.alone(tmp_path, 0, 1):
        with pytest.raises(FeaturesError, match="another process is extracting into"):
            nethook.extract(model, loader(), at="2", to=tmp_path)
    (tmp_path / "rank-00000-shard-00000.safetensors.123.tmp").write_text("half")
    nethook.extract(model, loader(), at="2", to=tmp_path)
    assert not list(tmp_path.glob("*.tmp"))


def test_a_shard_of_something_else_is_not_continued(model, tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "rank-00000-shard-00000.safetensors"
    for about in ({}, {"nethook_features": "[]"}, {"nethook_features": '{"setup": 1}'}):
        save_file({"a": torch.ones(2)}, path, metadata=about)
        with pytest.raises(ResumeError, match="not from an extraction that can be continued"):
            nethook.extract(model, loader(), at="2", to=tmp_path)


def test_several_processes_need_a_sampler_that_divides():
    for given in (loader(), loader(shuffle=True)):
        with pytest.raises(OptionError, match="DistributedSampler"):
            find_source(given, 2)
    for given in (loader(Stream()), [X], iter([X])):
        with pytest.raises(
            OptionError, match="`loader` must be a DataLoader with a DistributedSampler where 2"
        ):
            find_source(given, 2)


def test_processes_that_do_not_extract_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        part = loader(sampler=DistributedSampler(DATA, 2, rank, shuffle=False))
        if rank == 0:
            assert not nethook.extract(network(), part, at="2", to=tmp_path).complete
        else:
            with pytest.raises(ResumeError, match=r"processes 0 and 1 did not .*the model"):
                nethook.extract(network(1), part, at="2", to=tmp_path)  # other weights
    with pytest.raises(ResumeError, match="processes 0 and 1"):
        nethook.load_features(tmp_path)
    monkeypatch.delenv("WORLD_SIZE")
    with pytest.raises(ResumeError, match=r"the number of processes \(2 then, 1 now\)"):
        nethook.extract(network(), loader(), at="2", to=tmp_path)


def test_a_full_disk_is_said(model, tmp_path, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(FeaturesError, match=r"cannot be written: .*No space left"):
        nethook.extract(model, loader(), at="2", to=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_model_is_told_by_all_that_its_conjugate_views_show():
    """Both parts of a complex number, and the imaginary part alone, whose sign is turned."""
    model, x = nn.Module(), torch.randn(3, dtype=torch.complex64)
    for shown in (x.conj(), x.conj().imag):
        model.register_buffer("shown", shown)
        before = fingerprint(model)
        assert fingerprint(model) == before
        x.imag.add_(1)
        assert fingerprint(model) != before
