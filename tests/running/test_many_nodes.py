"""Ranks that were started apart, by launchers of their own, write one run."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nethook

TRAINS = """
import os
import torch
from torch import nn

if "RANK" not in os.environ:  # as scripts for Slurm do
    os.environ.update(RANK=os.environ["SLURM_PROCID"], WORLD_SIZE=os.environ["SLURM_NTASKS"])
torch.manual_seed(0)
torch.distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.distributed.destroy_process_group()
"""


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    launchers = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "MASTER_", "TORCHELASTIC", "SLURM_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(launchers)}
    return {**kept, "OMP_NUM_THREADS": "1", **more}


def check(started: list[subprocess.Popen[str]], folder: Path, name: str) -> None:
    said = [process.communicate(timeout=240)[0] for process in started]
    assert [process.returncode for process in started] == [0] * len(started), "\n".join(said)
    names = sorted(path.name for path in (folder / "runs").glob("*.db"))
    assert names == [f"{name}.db", f"{name}.rank1.db"]
    with nethook.open_run(folder / "runs" / f"{name}.db") as run:
        assert [(rank.rank, rank.state) for rank in run.ranks] == [(0, "finished"), (1, "finished")]
    # One of them speaks, for both.
    assert sum("── nethook" in text for text in said) == 1
    assert "2 ranks" in "\n".join(said)


def test_two_agents_of_torchrun_that_start_apart(tmp_path: Path) -> None:
    (tmp_path / "ddp.py").write_text(TRAINS)
    port = free_port()
    started = []
    for node in ("0", "1"):
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
        command += ["--node-rank", node, "--nproc-per-node", "1", "--master-addr", "127.0.0.1"]
        command += ["--master-port", port, "-m", "nethook", "run", "ddp.py"]
        started.append(
            subprocess.Popen(
                command,
                cwd=tmp_path,
                env=environment(NETHOOK_RUN_ID=""),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        time.sleep(1.5)
    from nethook.runs.launch import launch

    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    check(started, tmp_path, f"ddp-{launch(told).identity}")


def test_tasks_of_slurm_without_a_launcher(tmp_path: Path) -> None:
    (tmp_path / "ddp.py").write_text(TRAINS)
    port = free_port()
    started = []
    for task in ("0", "1"):
        slurm = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "2", "SLURM_PROCID": task}
        told = {**slurm, "SLURM_NTASKS": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "nethook", "run", "ddp.py"],
                cwd=tmp_path,
                env=environment(**told),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        time.sleep(1.5)
    check(started, tmp_path, "ddp-slurm-4711.2")


@pytest.mark.skipif(shutil.which("srun") is None, reason="Slurm is not installed")
def test_tasks_of_srun(tmp_path: Path) -> None:
    (tmp_path / "ddp.py").write_text(TRAINS)
    command = ["srun", "--ntasks", "2", sys.executable, "-m", "nethook", "run", "ddp.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": free_port()},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = sorted(path.name for path in (tmp_path / "runs").glob("*.db"))
    assert re.fullmatch(r"ddp-slurm-\d+\.0\.db", first)
    assert second == first.replace(".db", ".rank1.db")
    with nethook.open_run(tmp_path / "runs" / first) as run:
        assert [(rank.rank, rank.state) for rank in run.ranks] == [(0, "finished"), (1, "finished")]
