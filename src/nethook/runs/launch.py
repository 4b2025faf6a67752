"""Which launch this process belongs to: its rank, and an identity that all of its ranks agree on.

Ranks write files of one name, and nothing is exchanged between them. On one machine they have one
launcher, and the time at which that was started is the name. On several machines each has a
launcher of its own, started at a moment of its own: there the name is made of what the launchers
were told.

    NETHOOK_RUN_ID                          what the user says
    SLURM_JOB_ID, SLURM_STEP_ID             srun, with several tasks
    SKYPILOT_TASK_ID                        SkyPilot, on several nodes
    TORCHELASTIC_RUN_ID                     torchrun --rdzv-id, on several nodes
    MASTER_ADDR, MASTER_PORT, WORLD_SIZE    torchrun without an id, and everything else
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_LONGEST: Final = 60  # characters of an identity in a file's name


@dataclass(frozen=True)
class Launch:
    """What the environment says about this process.

    Arguments:
        rank: of this process; 0 where nothing says otherwise.
        world_size: how many there are.
        identity: the same for all ranks, and fit for a file's name; empty where the time of the
            common launcher serves.
    """

    rank: int
    world_size: int
    identity: str


def launch(environment: Mapping[str, str] | None = None) -> Launch:
    """The launch that an environment describes; None for that of this process."""
    env = os.environ if environment is None else environment
    rank, world = _number(env, "RANK", 0), _number(env, "WORLD_SIZE", 1)
    if _in_slurm_step(env):
        # A script that starts its group from Slurm's own variables may never set RANK.
        rank = _number(env, "RANK", _number(env, "SLURM_PROCID", 0))
        world = _number(env, "WORLD_SIZE", _slurm_tasks(env))
    return Launch(rank, max(world, rank + 1, 1), _fit(_identity(env, world)))


def _identity(env: Mapping[str, str], world: int) -> str:
    if chosen := env.get("NETHOOK_RUN_ID", "").strip():
        return chosen
    if _in_slurm_step(env):
        return f"slurm-{env['SLURM_JOB_ID']}.{env['SLURM_STEP_ID']}"
    if world <= 1:
        return ""
    if env.get("SKYPILOT_TASK_ID") and _number(env, "SKYPILOT_NUM_NODES", 1) > 1:
        return env["SKYPILOT_TASK_ID"]
    elastic = env.get("TORCHELASTIC_RUN_ID")
    if elastic is not None and _number(env, "LOCAL_WORLD_SIZE", world) >= world:
        return ""  # one launcher on one machine
    if elastic not in (None, "", "none"):  # torchrun says "none" where it was given no id
        return elastic
    address = env.get("MASTER_ADDR")
    if address is None:
        return ""
    told = f"{address}:{env.get('MASTER_PORT', '')}/{world}"
    return hashlib.sha256(told.encode()).hexdigest()[:10]


def _in_slurm_step(env: Mapping[str, str]) -> bool:
    """Whether srun started this process together with others.

    A batch script has a job, and no step.
    """
    return "SLURM_JOB_ID" in env and "SLURM_STEP_ID" in env and _slurm_tasks(env) > 1


def _slurm_tasks(env: Mapping[str, str]) -> int:
    return _number(env, "SLURM_STEP_NUM_TASKS", _number(env, "SLURM_NTASKS", 1))


def _fit(identity: str) -> str:
    """As a part of a file's name; what is too long keeps its end, which tells runs apart."""
    return re.sub(r"[^\w.+-]+", "-", identity)[-_LONGEST:].strip("-.")


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    try:
        return max(0, int(env[name]))
    except (KeyError, ValueError):
        return default
