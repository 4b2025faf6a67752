"""Runs in object stores: fsspec's own stores here, S3 where its libraries are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import fsspec
import pytest

import nethook
from nethook.errors import MissingLibraryError, NoSuchRunError, RunFileError
from nethook.runs.stores import fetched, is_url, publish
from nethook.runs.writing.writer import RunWriter


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NETHOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    store = fsspec.filesystem("memory")
    store.store.clear()
    yield store
    store.store.clear()


def made(path: Path, value: float = 0.5, ranks: int = 1) -> Path:
    for rank in range(ranks):
        with RunWriter(path, rank=rank, world_size=ranks) as writer:
            writer.log("accuracy", value + rank, 0)
    return path


def test_what_is_an_address() -> None:
    assert is_url("s3://bucket/a.db")
    assert is_url("memory://a.db")
    assert not is_url("runs/a.db")
    assert not is_url("C://runs/a.db")
    assert not is_url(Path("s3://bucket/a.db"))


@pytest.mark.usefixtures("memory")
def test_a_run_comes_back_with_all_its_ranks(tmp_path: Path) -> None:
    run = made(tmp_path / "a.db", ranks=2)
    names = publish(run, "memory://bucket/runs")
    assert names == ["memory://bucket/runs/a.db", "memory://bucket/runs/a.rank1.db"]
    with nethook.open_run("memory://bucket/runs/a.db") as opened:
        assert [rank.state for rank in opened.ranks] == ["finished", "finished"]
        assert opened.scalars["accuracy"].value.tolist() == [0.5]
    with nethook.open_run("memory://bucket/runs/a.rank1.db") as opened:
        assert len(opened.ranks) == 2


def test_an_unchanged_file_is_not_fetched_again(
    tmp_path: Path, memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(made(tmp_path / "a.db"), "memory://bucket/a.db")
    fetches = []
    real = memory.get_file
    monkeypatch.setattr(memory, "get_file", lambda *a, **k: (fetches.append(a), real(*a, **k))[1])
    for _ in range(3):
        fetched("memory://bucket/a.db")
    assert len(fetches) == 1
    publish(made(tmp_path / "b.db", value=0.75), "memory://bucket/a.db")
    with nethook.open_run("memory://bucket/a.db") as run:
        assert run.scalars["accuracy"].value.tolist() == [0.75]
    assert len(fetches) == 2


@pytest.mark.usefixtures("memory")
def test_ranks_of_an_earlier_run_are_forgotten(tmp_path: Path) -> None:
    publish(made(tmp_path / "two.db", ranks=2), "memory://bucket/a.db")
    fetched("memory://bucket/a.db")
    fsspec.filesystem("memory").rm("/bucket/a.rank1.db")
    with nethook.open_run("memory://bucket/a.db") as run:
        assert [rank.state for rank in run.ranks] == ["finished", "missing"]


@pytest.mark.usefixtures("memory")
def test_a_run_is_published_while_it_is_written(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.log("accuracy", 0.25, 0)
        writer.flush(30)
        publish(tmp_path / "a.db", "memory://bucket")
    with nethook.open_run("memory://bucket/a.db") as run:
        assert run.scalars["accuracy"].value.tolist() == [0.25]


@pytest.mark.usefixtures("memory")
def test_publishing_leaves_nothing_beside_the_run(tmp_path: Path) -> None:
    run = made(tmp_path / "runs.db")
    before = sorted(path.name for path in tmp_path.iterdir())
    publish(run, "memory://bucket")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.usefixtures("memory")
def test_errors_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRunError, match=r"there is no run 'memory://bucket/none\.db'"):
        nethook.open_run("memory://bucket/none.db")
    with pytest.raises((RunFileError, MissingLibraryError), match="nosuchstore"):
        nethook.open_run("nosuchstore://bucket/a.db")
    with pytest.raises(NoSuchRunError):
        publish(tmp_path / "none.db", "memory://bucket")


@pytest.mark.skipif(
    find_spec("s3fs") is None or find_spec("moto") is None,
    reason="S3 itself has an environment of its own, with moto's server: docs/clusters.md",
)
def test_s3_on_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = 18000 + os.getpid() % 2000
    address = f"http://127.0.0.1:{port}"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("FSSPEC_S3_ENDPOINT_URL", address)
    from fsspec.config import conf, set_conf_env

    set_conf_env(conf)
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        store = fsspec.filesystem("s3", endpoint_url=address)
        for _ in range(60):
            try:
                store.mkdir("bucket")
                break
            except Exception:
                time.sleep(0.5)
        publish(made(tmp_path / "a.db", ranks=2), "s3://bucket/runs")
        with nethook.open_run("s3://bucket/runs/a.db") as run:
            assert [rank.state for rank in run.ranks] == ["finished", "finished"]
        publish(made(tmp_path / "b.db", value=0.75), "s3://bucket/runs/a.db")
        with nethook.open_run("s3://bucket/runs/a.db") as run:
            assert run.scalars["accuracy"].value[0] == 0.75
    finally:
        server.terminate()
        server.wait(30)
