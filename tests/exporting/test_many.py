"""Many runs as one folder of tables."""

from __future__ import annotations

import csv
import importlib
import re
import sqlite3
from importlib.util import find_spec
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest
import torch

import nethook
from nethook.errors import OptionError
from nethook.exporting.export import export
from nethook.exporting.many import export_runs
from nethook.runs.stores import publish
from nethook.runs.writing.writer import RunWriter

ROOT = Path(__file__).parents[2]


def made(path: Path, arguments: list[str], ranks: int = 1, revision: str = "") -> Path:
    path.parent.mkdir(exist_ok=True)
    for rank in range(ranks):
        info = {"command": ["python", "train.py", *arguments]}
        more = {"git": {"commit": revision}} if revision else {}
        with RunWriter(path, rank=rank, world_size=ranks, info={**info, **more}) as writer:
            for step in range(3):
                writer.log("accuracy", rank + step / 10, step)
    return path


def test_runs_are_told_apart_by_columns(tmp_path: Path) -> None:
    runs = [
        made(tmp_path / "a.db", ["--lr", "0.1", "--seed", "1"], revision="c0ffee"),
        made(tmp_path / "b.db", ["--lr", "0.2"]),
    ]
    files = export_runs(runs, "parquet", tmp_path / "out")
    assert {file.name for file in files} >= {"scalars.parquet"}
    table = pq.read_table(tmp_path / "out" / "scalars.parquet").to_pylist()
    mine = [row for row in table if row["name"] == "accuracy"]
    assert [(row["run"], row["rank"], row["setting_lr"], row["setting_seed"]) for row in mine] == [
        *[("a", 0, "0.1", "1")] * 3,
        *[("b", 0, "0.2", None)] * 3,
    ]
    assert [row["revision"] for row in mine] == ["c0ffee"] * 3 + [mine[-1]["revision"]] * 3
    assert [row["value"] for row in mine] == pytest.approx([0.0, 0.1, 0.2] * 2)


def test_a_column_that_the_first_run_has_not(tmp_path: Path) -> None:
    runs = [made(tmp_path / "a.db", []), made(tmp_path / "b.db", ["--lr", "0.2"])]
    export_runs(runs, "parquet", tmp_path / "out")
    settings = pq.read_table(tmp_path / "out" / "scalars.parquet")["setting_lr"].to_pylist()
    assert set(settings) == {None, "0.2"}


def test_each_rank_by_itself(tmp_path: Path) -> None:
    run = made(tmp_path / "a.db", [], ranks=2)
    export_runs([run], "csv", tmp_path / "out", per_rank=True)
    with (tmp_path / "out" / "scalars.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["name"] == "accuracy"]
    assert [(row["rank"], float(row["value"])) for row in rows if row["step"] == "2"] == [
        ("0", 0.2),
        ("1", 1.2),
    ]


def test_one_run_has_the_same_numbers_as_alone(tmp_path: Path) -> None:
    run = made(tmp_path / "a.db", ["--lr", "0.1"])
    export(run, "parquet", tmp_path / "alone")
    export_runs([run, run], "parquet", tmp_path / "both")
    for name in ("scalars", "events"):
        file = tmp_path / "alone" / f"{name}.parquet"
        if not file.exists():
            continue
        alone = pq.read_table(file).to_pylist()
        both = pq.read_table(tmp_path / "both" / f"{name}.parquet").to_pylist()
        assert len(both) == 2 * len(alone)
        for mine, other in zip(alone + alone, both, strict=True):
            assert {key: other[key] for key in mine} == mine


def test_runs_of_one_name_keep_their_paths(tmp_path: Path) -> None:
    runs = [made(tmp_path / "x" / "run.db", []), made(tmp_path / "y" / "run.db", [])]
    export_runs(runs, "parquet", tmp_path / "out")
    names = set(pq.read_table(tmp_path / "out" / "scalars.parquet")["run"].to_pylist())
    assert names == {str(run) for run in runs}


def test_files_of_several_ranks_are_one_run(tmp_path: Path) -> None:
    """As `runs/*.db` names them."""
    made(tmp_path / "a.db", [], ranks=3)
    made(tmp_path / "b.db", [])
    lone = made(tmp_path / "c.db", [], ranks=2)
    lone.unlink()  # its first rank is missing
    runs = sorted(tmp_path.glob("*.db"))
    assert len(runs) == 5
    export_runs(runs[::-1], "parquet", tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "scalars.parquet").to_pylist()
    steps = [(row["run"], row["step"]) for row in table if row["name"] == "accuracy"]
    assert sorted(steps) == [(run, step) for run in ("a", "b", "c.rank1") for step in range(3)]


def test_runs_in_a_store_keep_their_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETHOOK_CACHE", str(tmp_path / "cache"))
    addresses = [f"memory://{folder}/a.db" for folder in ("x", "y")]
    for address in addresses:
        publish(made(tmp_path / "a" / "a.db", []), address)
        (tmp_path / "a" / "a.db").unlink()
    try:
        export_runs(addresses, "parquet", tmp_path / "out")
    finally:
        fsspec.filesystem("memory").store.clear()
    names = set(pq.read_table(tmp_path / "out" / "scalars.parquet")["run"].to_pylist())
    assert names == set(addresses)


def test_what_is_refused(tmp_path: Path) -> None:
    run = made(tmp_path / "a.db", [])
    with pytest.raises(OptionError, match="`to` must be one of csv, parquet for several runs"):
        export_runs([run, run], "tensorboard", tmp_path / "out")
    with pytest.raises(OptionError, match="`folder` must be new or empty"):
        export_runs([run, run], "csv", tmp_path)


def test_a_folder_of_runs_is_one_query(tmp_path: Path) -> None:
    """Every query of docs/clusters.md, with SQLite in the place of DuckDB."""
    runs = [trained(tmp_path / f"{k}.db", lr=k / 10) for k in range(1, 4)]
    export_runs(runs, "parquet", tmp_path / "all")
    database = sqlite3.connect(":memory:")
    for name in ("loss_curves", "series"):
        table = pq.read_table(tmp_path / "all" / f"{name}.parquet")
        database.execute(f"CREATE TABLE {name} ({', '.join(table.column_names)})")
        marks = ", ".join("?" * len(table.column_names))
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    plain = [
        re.sub(r"'all/(\w+)\.parquet'", r"\1", query).replace("GROUP BY ALL", "GROUP BY 1, 2")
        for query in queries()
    ]
    best, silent = (
        database.execute(query.replace("first_step >= 1000", "first_step >= 0")).fetchall()
        for query in plain
    )
    database.close()
    assert sorted(lr for lr, _, _ in best) == ["0.1", "0.2", "0.3"]
    assert {(run, address) for run, address, _ in silent} == {(k, "1") for k in ("1", "2", "3")}


@pytest.mark.skipif(
    find_spec("duckdb") is None,
    reason="DuckDB itself has an environment of its own: docs/clusters.md",
)
def test_duckdb_answers_the_queries_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [trained(tmp_path / f"{k}.db", lr=k / 1000) for k in range(1, 101)]
    monkeypatch.chdir(tmp_path)
    export_runs(runs, "parquet", Path("all"))
    query = importlib.import_module("duckdb").sql
    best, silent = (query(each.replace(">= 1000", ">= 0")).fetchall() for each in queries())
    losses = [least for _, _, least in best]
    assert len(best) == 10  # of a hundred
    assert losses == sorted(losses)
    assert {(run, address) for run, address, _ in silent} == {(str(k), "1") for k in range(1, 101)}


def queries() -> list[str]:
    """Every query of docs/clusters.md."""
    page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    return [query for block in blocks for query in block.split(";") if query.strip()]


def trained(path: Path, lr: float) -> Path:
    """A run of ten steps and an evaluation, of a network whose second layer is silent."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    torch.nn.init.constant_(model[0].bias, -100.0)
    optimizer = torch.optim.SGD(model.parameters(), lr)
    x, y = torch.randn(8, 2), torch.randn(8, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["train.py", "--lr", str(lr), "--seed", "0"])
        with nethook.watch(model, optimizer, to=path, budget=None):
            for _ in range(10):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                torch.nn.functional.mse_loss(model(x), y)
    return path
