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
from nethook.runs.stores import beside, fetched, fetched_runs, is_url, publish
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
def test_a_folder_of_runs_with_all_below_it(tmp_path: Path, cache: Path) -> None:
    publish(made(tmp_path / "a.db", ranks=2), "memory://bucket/runs")
    publish(made(tmp_path / "b.db"), "memory://bucket/runs/today")
    folder = fetched_runs("memory://bucket/runs")
    names = ["a.db", "a.rank1.db", "today/b.db"]
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.db")) == names
    assert cache in folder.parents
    assert folder.name.endswith("bucket-runs")
    fsspec.filesystem("memory").rm("/bucket/runs/a.rank1.db")
    fetched_runs("memory://bucket/runs/")
    assert not (folder / "a.rank1.db").exists()
    assert fetched_runs("memory://bucket/runs/a.db").read_bytes() == (folder / "a.db").read_bytes()
    with pytest.raises(NoSuchRunError, match="there is no run 'memory://bucket/none'"):
        fetched_runs("memory://bucket/none")


def test_no_name_leads_out_of_the_folder(
    tmp_path: Path, memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(made(tmp_path / "a.db"), "memory://bucket/runs")
    (found,) = memory.find("/bucket/runs", detail=True).values()
    hostile = {f"/bucket/runs/{name}": found for name in ("../../out.db", "x/../../../out.db", "")}
    monkeypatch.setattr(memory, "find", lambda *_, **__: hostile)
    before = set(tmp_path.rglob("*.db"))
    folder = fetched_runs("memory://bucket/runs")
    assert list(folder.iterdir()) == []
    assert set(tmp_path.rglob("*.db")) == before


@pytest.mark.usefixtures("memory")
def test_results_of_a_copy_go_to_the_current_folder(tmp_path: Path) -> None:
    run = made(tmp_path / "a.db")
    publish(run, "memory://bucket")
    assert beside(fetched("memory://bucket/a.db"), ".html") == Path("a.html")
    assert beside(run, ".html") == tmp_path / "a.html"


@pytest.mark.usefixtures("memory")
def test_errors_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRunError, match=r"there is no run 'memory://bucket/none\.db'"):
        nethook.open_run("memory://bucket/none.db")
    with pytest.raises((RunFileError, MissingLibraryError), match="nosuchstore"):
        nethook.open_run("nosuchstore://bucket/a.db")
    with pytest.raises(NoSuchRunError):
        publish(tmp_path / "none.db", "memory://bucket")


A, C = "s3://bucket/runs/a.db", "s3://bucket/runs/c.db"
COMMANDS = [  # with the exit code of each
    (["diagnose", A], 0),
    (["report", A], 0),
    (["diff", A, C], 0),  # they have no series in common
    (["metrics", A], 0),
    (["export", A, "--format", "csv"], 0),
    (["export", A, C, "--format", "csv", "--to", "both"], 0),
]


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
        publish(made(tmp_path / "c.db"), "s3://bucket/runs")
        folder = fetched_runs("s3://bucket/runs")
        assert sorted(path.name for path in folder.glob("*.db")) == ["a.db", "a.rank1.db", "c.db"]
        for words, code in COMMANDS:
            command = [sys.executable, "-m", "nethook", *words]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        assert (tmp_path / "a.html").stat().st_size > 1_000_000
        assert (tmp_path / "a-csv" / "scalars.csv").is_file()
        lines = (tmp_path / "both" / "scalars.csv").read_text().splitlines()
        assert {line.partition(",")[0] for line in lines} == {"run", "a", "c"}
    finally:
        server.terminate()
        server.wait(30)
