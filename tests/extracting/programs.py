"""Extractions that are killed or share their work: run as a program, so that forks are cheap.

`python -m tests.extracting.programs NAME FOLDER` asserts what it is about and prints "ok".
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import nethook
from nethook.errors import NoSuchFeaturesError

ROWS, BATCH, SHARD_MB = 83, 4, 0.0016
SITES = ["0", "2"]


class Samples(Dataset[Any]):
    """Rows that follow from their number; notes which were asked for, and takes its time."""

    def __init__(self, rows: int = ROWS, seconds: float = 0.0) -> None:
        self.rows = rows
        self.seconds = seconds
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int, str]:
        self.asked.append(row)
        time.sleep(self.seconds)
        x = torch.randn(8, generator=torch.Generator().manual_seed(row))
        return x, row % 7, f"sample {row}"


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4), nn.Linear(4, 1))


def run(folder: Path, data: Samples | None = None, *, shuffle: bool = False) -> Any:
    data = data or Samples()
    order = torch.Generator().manual_seed(3) if shuffle else None
    loader = DataLoader(data, batch_size=BATCH, shuffle=shuffle, generator=order)
    return nethook.extract(network(), loader, at=SITES, to=folder, shard_mb=SHARD_MB)


def forked(job: Callable[[], object]) -> int:
    """A child that does a job and ends with status 0, or 1 where it raised."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        job()
        status = 0
    finally:
        os._exit(status)


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def same(folder: Path, whole: Path) -> None:
    """Equal to the last byte: every tensor, label and id; no file is left over."""
    one, other = nethook.load_features(folder), nethook.load_features(whole)
    for site in SITES:
        pair = [each.tensor(site).contiguous().view(torch.uint8) for each in (one, other)]
        assert torch.equal(*pair)
    assert torch.equal(torch.as_tensor(one.labels), torch.as_tensor(other.labels))
    assert one.ids == other.ids == [f"sample {row}" for row in range(len(one))]
    files = [{p.name: p.read_bytes() for p in each.iterdir()} for each in (folder, whole)]
    assert files[0] == files[1]


def killed_at_random(folder: Path) -> None:
    """Ten extractions, each killed at random moments until one comes to its end."""
    chance = random.Random(0)
    for shuffle in (False, True):
        run(folder / f"whole-{shuffle}", shuffle=shuffle)
    kills = inside = 0
    # Ten, and more where the machine was so quick or so busy that too few kills struck inside.
    for turn in range(100):
        if turn >= 10 and kills >= 10 and inside >= 5:
            break
        shuffle = bool(turn % 2)
        target = folder / f"killed-{turn}"
        for attempt in range(100):
            pid = forked(partial(run, target, Samples(seconds=0.002), shuffle=shuffle))
            time.sleep(chance.uniform(0.02, 0.12) * (1 + attempt / 4))
            os.kill(pid, signal.SIGKILL)
            if ended(pid) == 0:
                break
            kills += 1
            inside += any(target.glob("*.safetensors")) and not (target / "index.json").exists()
            with suppress(NoSuchFeaturesError):  # not whole, and nobody takes it for whole
                nethook.load_features(target)
        else:
            raise AssertionError("it never came to its end")
        same(target, folder / f"whole-{shuffle}")
    else:
        raise AssertionError(f"of {kills} kills, {inside} struck in the middle")


def killed_at_every_write(folder: Path) -> None:
    """Killed right before and after each time something reaches the disk."""
    run(folder / "whole")
    done = list(nethook.load_features(folder / "whole").to_dict()["shards"])
    assert len(done) >= 4
    for event in range(1000):
        target = folder / f"killed-{event}"
        status = ended(forked(partial(_run_and_die, target, event)))
        if status == 0:
            break
        assert status == -signal.SIGKILL
        there = len(list(target.glob("*.safetensors")))
        data = Samples()
        found = run(target, data)
        # What was on the disk was taken over, and its samples were not even loaded again.
        assert found.resumed == sum(shard["rows"] for shard in done[:there])
        assert data.asked == list(range(found.resumed, ROWS)) or not data.asked
        same(target, folder / "whole")
    assert event >= 3 * len(done)


def _run_and_die(folder: Path, event: int) -> None:
    _die_at(event)
    run(folder)


def _die_at(event: int) -> None:
    """Ends this process the hard way at the n-th event on the way to the disk."""
    left = [event]

    def maybe_die() -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    fsync, replace = os.fsync, Path.replace

    def dying_fsync(file: int) -> None:
        maybe_die()
        fsync(file)

    def dying_replace(self: Path, target: Any) -> Path:
        maybe_die()
        moved = replace(self, target)
        maybe_die()
        return moved

    os.fsync = dying_fsync
    Path.replace = dying_replace  # type: ignore[method-assign, assignment]


def ranks(folder: Path) -> None:
    """Two ranks, with a process group or torchrun's environment alone, against one process."""
    for rows in (1, 2, 23, 24):
        whole = folder / f"whole-{rows}"
        run(whole, Samples(rows))
        for shuffle in (False, True):
            for grouped in (True, False):
                target = folder / f"ranks-{rows}-{shuffle}-{grouped}"
                store = folder / f"store-{rows}-{shuffle}"
                jobs = [_rank(target, rank, rows, shuffle, store if grouped else None)
                        for rank in range(2)]  # fmt: skip
                pids = [forked(job) for job in jobs]
                assert [ended(pid) for pid in pids] == [0, 0]
                _same_rows(target, whole)
                index = json.loads((target / "index.json").read_text())
                assert sum(shard["rows"] for shard in index["shards"]) == rows + rows % 2  # padded
                (target / "index.json").unlink()  # as if no rank had noticed that it is the last
                _same_rows(target, whole)


def one_rank_killed(folder: Path) -> None:
    """One rank is killed and the other is done; all are started again."""
    run(folder / "whole", Samples(23))
    target = folder / "ranks"
    assert ended(forked(_rank(target, 0, 23, False, None))) == 0

    def dies() -> None:
        _die_at(4)
        _rank(target, 1, 23, False, None)()

    assert ended(forked(dies)) == -signal.SIGKILL
    with pytest.raises(NoSuchFeaturesError, match="has not ended"):
        nethook.load_features(target)
    shards = {path: path.stat().st_mtime_ns for path in target.glob("*.safetensors")}
    assert len({path.name[:10] for path in shards}) == 2  # both had written some
    for rank in (1, 0):
        assert ended(forked(_rank(target, rank, 23, False, None))) == 0
    assert shards == {path: path.stat().st_mtime_ns for path in shards}  # and none was made anew
    _same_rows(target, folder / "whole")


def _same_rows(folder: Path, whole: Path) -> None:
    one, other = nethook.load_features(folder), nethook.load_features(whole)
    assert len(one) == len(other)
    assert one.ids == other.ids
    assert torch.equal(one.numbers, torch.arange(len(one)))
    for site in SITES:  # the batches are others, so the last bits may be
        torch.testing.assert_close(one.tensor(site), other.tensor(site))
    assert [one[row][1] for row in range(len(one))] == [other[row][1] for row in range(len(one))]


def _rank(
    folder: Path, rank: int, rows: int, shuffle: bool, store: Path | None
) -> Callable[[], None]:
    def job() -> None:
        if store is not None:
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{store}", rank=rank, world_size=2
            )
        else:
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2"}
        data = Samples(rows)
        sampler = DistributedSampler(data, 2, rank, shuffle=shuffle, seed=5)
        loader = DataLoader(data, batch_size=BATCH, sampler=sampler)
        found = nethook.extract(network(), loader, at=SITES, to=folder, shard_mb=SHARD_MB)
        again = nethook.extract(network(), loader, at=SITES, to=folder, shard_mb=SHARD_MB)
        assert again.resumed >= found.rows
        if store is not None:
            torch.distributed.barrier()
            assert len(found.load()) == rows
            torch.distributed.destroy_process_group()

    return job


def memory(folder: Path) -> None:
    """Sixteen times the data takes no more memory: a shard, and what a batch needs."""
    grown = {}
    for batches in (16, 256):
        report = folder / f"{batches}.txt"

        def job(batches: int = batches, report: Path = report) -> None:
            batch = torch.randn(16, 4096)  # 256 KB
            model = nn.Sequential(nn.Identity(), nn.Linear(4096, 1))
            # Once before, small: what is loaded on first use is no matter of the data.
            nethook.extract(model, [batch], at="0", to=folder / f"first-{batches}")
            kind = resource.RUSAGE_SELF
            before = resource.getrusage(kind).ru_maxrss
            to = folder / str(batches)
            nethook.extract(model, [batch] * batches, at="0", to=to, shard_mb=2)
            report.write_text(str(resource.getrusage(kind).ru_maxrss - before))

        assert ended(forked(job)) == 0
        grown[batches] = int(report.read_text()) / 1024
    assert len(nethook.load_features(folder / "256").tensor("0")) == 4096  # 67 MB
    # One shard of 2 MB, a batch or two, and what the allocators keep; the data are 67 MB.
    assert grown[256] < 12, grown
    assert grown[256] - grown[16] < 4, grown


PROGRAMS = (killed_at_random, killed_at_every_write, ranks, one_rank_killed, memory)

if __name__ == "__main__":
    torch.set_num_threads(1)
    name, where = sys.argv[1:]
    {
        each.__name__: each for each in PROGRAMS
    }[name](Path(where))  # fmt: skip
    print("ok")
