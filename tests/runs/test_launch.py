"""Rank, size and identity of a launch, from what each launcher puts into the environment."""

from __future__ import annotations

import pytest

from nethook.runs.launch import Launch, launch

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, Launch(0, 1, ""), id="no launcher"),
        pytest.param(
            {**TORCHRUN, "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"},
            Launch(3, 4, ""),
            id="torchrun on one machine",
        ),
        pytest.param(
            {**TORCHRUN, "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "job 7/a"},
            Launch(3, 4, "job-7-a"),
            id="torchrun with an id",
        ),
        pytest.param(
            {
                "SLURM_JOB_ID": "4711",
                "SLURM_STEP_ID": "0",
                "SLURM_PROCID": "1",
                "SLURM_NTASKS": "2",
            },
            Launch(1, 2, "slurm-4711.0"),
            id="srun, and a script without RANK",
        ),
        pytest.param(
            {**TORCHRUN, "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}
            | {"SLURM_STEP_NUM_TASKS": "2", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"},
            Launch(3, 4, "slurm-4711.0"),
            id="torchrun under srun",
        ),
        pytest.param(
            {"SLURM_JOB_ID": "4711", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
            Launch(0, 1, ""),
            id="a batch script has no step",
        ),
        pytest.param(
            {**TORCHRUN, "SKYPILOT_TASK_ID": "sky-1", "SKYPILOT_NUM_NODES": "2"},
            Launch(3, 4, "sky-1"),
            id="SkyPilot",
        ),
        pytest.param({"NETHOOK_RUN_ID": " mine "}, Launch(0, 1, "mine"), id="the user's"),
        pytest.param({"RANK": "x", "WORLD_SIZE": "-3"}, Launch(0, 1, ""), id="no numbers"),
        pytest.param({"RANK": "5"}, Launch(5, 6, ""), id="a rank without a size"),
    ],
)
def test_what_launchers_say(environment: dict[str, str], expected: Launch) -> None:
    assert launch(environment) == expected


def test_without_an_id_the_address_of_the_first_rank_is_one() -> None:
    nodes = [
        {**TORCHRUN, "RANK": rank, "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
        for rank in ("0", "3")
    ]
    first, second = (launch(node).identity for node in nodes)
    assert first == second != ""
    other_port = {**nodes[0], "MASTER_PORT": "29501"}
    assert launch(other_port).identity != first
    by_hand = {name: TORCHRUN[name] for name in TORCHRUN}  # no TORCHELASTIC_RUN_ID
    assert launch(by_hand).identity == first


def test_an_identity_fits_into_a_name() -> None:
    identity = launch({"NETHOOK_RUN_ID": "a/b:" + "c" * 300 + "-7"}).identity
    assert len(identity) <= 60
    assert identity.endswith("-7")
    assert not set(identity) & set('/\\:*?"<>| ')
