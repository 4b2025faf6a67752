"""A copy is trained on a few samples; the doctor's rules read that run as they read any other.

What writes the run down is handed in (`Recorder`): a watch does it, and stands above this room.
Trials that no rule reads, and the losses of all, are of a loop of their own.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from torch import nn

from nethook.doctor.causes import root_causes
from nethook.doctor.diagnose import examine
from nethook.doctor.finding import Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.rules import own_rules
from nethook.doctor.rules.symptoms.not_learning import LEARNT
from nethook.doctor.signals.first_loss import first_loss
from nethook.examining.checkup.batch import Batch
from nethook.examining.checkup.copies import Copies
from nethook.runs.reading.run import open_run


class Recorder(Protocol):
    """Records what the model does in a block, in full and in silence, to a run file at the path."""

    def __call__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, path: Path, *, examine: bool
    ) -> AbstractContextManager[object]:
        """With `examine`, experiments on copies are part of it."""


SAMPLES: Final = 16
STILL_STEPS: Final = 6
"""Steps at a rate of zero, on the whole batch: what needs no course of a loss is read there."""
SECONDS: Final = 20.0
"""A trial takes no longer than that."""
FALL: Final = LEARNT
"""Of the loss, by its start: what counts as overfitting a few samples."""
RATES: Final = (3e-3, 3e-2, 3e-4)
"""Of Adam, where no optimizer is given, and to tell whether a given one is at fault."""

# What says nothing about a run on a single batch, or is reported by the pre-flight check itself.
_LEFT_OUT: Final = frozenset({
    "repeated-batch", "overfitting", "scheduler-collapse", "not-learning", "replica-divergence",
    "missing-step", "missing-zero-grad", "gradient-wiped", "train-mode-evaluation",
})  # fmt: skip
_AT_ONCE: Final = frozenset({
    "no-gradient", "optimizer-misses-parameters", "unused-module", "non-finite",
    "batchnorm-small-batch", "input-ignored", "symmetric-init", "missing-activation",
})  # fmt: skip
_OF_OPTIMIZERS: Final = frozenset({
    "learning-rate-too-high", "learning-rate-too-low", "oscillating-loss", "adam-instability",
    "weight-decay-too-strong", "optimizer-misses-parameters",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """How the loss of a few samples went."""

    optimizer: str
    losses: tuple[float, ...]

    @property
    def start(self) -> float:
        """The first loss."""
        return self.losses[0]

    @property
    def end(self) -> float:
        """The median of the last five."""
        return statistics.median(self.losses[-5:])

    @property
    def learns(self) -> bool:
        """It fell by a good part."""
        return self.start - self.end >= FALL * max(abs(self.start), 1e-12)


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """What rules say of the first steps, and the first loss with the usual one."""

    findings: tuple[Finding, ...]
    first_loss: tuple[float, float] | None
    loss: float
    examined: tuple[Mapping[str, Any], ...] = ()


def first_steps(copies: Copies, batch: Batch, record: Recorder) -> FirstSteps:
    """A few steps that change nothing, on the whole batch."""
    with tempfile.TemporaryDirectory(prefix="nethook-") as folder:
        path = Path(folder) / "look.db"
        mine = copies.again()
        optimizer = torch.optim.SGD(_trained(mine), lr=0.0)
        with record(mine.model, optimizer, path, examine=True):
            losses = _train(mine, optimizer, batch, STILL_STEPS)
        rules = [
            r
            for r in own_rules()
            if r.code in _AT_ONCE
            or r.cause == Cause.LOSS
            or (_reads_experiments(r) and r.code not in _LEFT_OUT | _OF_OPTIMIZERS)
        ]
        if copies.optimizer is None:
            rules = [r for r in rules if r.code not in _OF_OPTIMIZERS]
        findings, *_ = examine(path, rules=rules)
        with open_run(path) as run:
            first = first_loss(History(run))
            examined = run.info.get("examined") or ()
    # A loss that reaches for the model itself (a penalty on its weights) has leaves that are no
    # copy's: another network to the rule, and none to the user.
    told = [f for f in findings if f.sites or f.code != "optimizer-misses-parameters"]
    return FirstSteps(tuple(told), first, losses[0], tuple(examined))


def _reads_experiments(rule: Rule) -> bool:
    return any(field.startswith("examined.") for field in rule.reads)


def trials(
    copies: Copies, batch: Batch, steps: int, record: Recorder
) -> tuple[list[Trial], list[Finding]]:
    """Training on a few samples until it goes well, and what rules say of the first try."""
    few = batch.first(SAMPLES)
    with tempfile.TemporaryDirectory(prefix="nethook-") as folder:
        path = Path(folder) / "trial.db"
        mine = copies.again()
        optimizer = mine.optimizer or torch.optim.Adam(_trained(mine), lr=RATES[0])
        name = _name(optimizer)
        with record(mine.model, optimizer, path, examine=False):
            made = [Trial(name, tuple(_train(mine, optimizer, few, steps)))]
        left_out = _LEFT_OUT | (_OF_OPTIMIZERS if copies.optimizer is None else frozenset())
        findings, *_ = examine(path, rules=[r for r in own_rules() if r.code not in left_out])
    for rate in RATES if copies.optimizer is not None else RATES[1:]:
        if made[-1].learns:
            break
        mine = copies.again()
        optimizer = torch.optim.Adam(_trained(mine, all_of_them=True), lr=rate)
        made.append(Trial(_name(optimizer), tuple(_train(mine, optimizer, few, steps))))
    if copies.optimizer is None and len(made) > 1 and made[-1].learns:
        findings = _without_symptoms(findings)  # of a rate that nobody has chosen
    return made, findings


def _without_symptoms(findings: Iterable[Finding]) -> list[Finding]:
    """What is wrong whatever the rate is."""
    causes = {rule.code: rule.cause for rule in own_rules()}
    kept = [finding for finding in findings if causes[finding.code] < Cause.SETTINGS]
    return [
        dataclasses.replace(
            finding,
            consequences=tuple(c for c in finding.consequences if causes[c.code] < Cause.SETTINGS),
        )
        for finding in kept
    ]


def joined(*sources: Iterable[Finding]) -> list[Finding]:
    """Findings of several sources, each code once; a later source has the last word.

    Symptoms are listed under what causes them. All else stands by itself: what is wrong with the
    loss before the first step does not follow from what is wrong with the optimizer.
    """
    causes = {rule.code: rule.cause for rule in own_rules()}
    by_code: dict[str, Finding] = {}
    for finding in itertools.chain(*sources):
        for one in (finding, *finding.consequences):
            by_code[one.code] = dataclasses.replace(one, consequences=())
    ordered = sorted(
        by_code.values(), key=lambda finding: (causes[finding.code], finding.severity == "info")
    )
    facts = [finding for finding in ordered if causes[finding.code] < Cause.SYMPTOM]
    symptoms = [(causes[f.code], f) for f in ordered if causes[f.code] >= Cause.SYMPTOM]
    serious = [finding for finding in facts if finding.at_least("warning")]
    if not serious:
        return [*facts, *root_causes(symptoms)]
    cause = dataclasses.replace(serious[0], consequences=tuple(root_causes(symptoms)))
    return [cause if finding is serious[0] else finding for finding in facts]


def _train(mine: Copies, optimizer: Any, batch: Batch, steps: int) -> list[float]:
    losses: list[float] = []
    began = time.perf_counter()
    mine.model.train()
    # The order of most scripts: rules about the contract of the loop read these steps, too.
    for _ in range(steps):
        loss = batch.loss(mine.loss, batch.inputs.call(mine.model))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if len(losses) >= STILL_STEPS and time.perf_counter() - began > SECONDS:
            break
    return losses


def _trained(copies: Copies, *, all_of_them: bool = False) -> list[nn.Parameter]:
    """What is trained: what the optimizer has, or else all that require a gradient."""
    if copies.optimizer is not None and not all_of_them:
        groups = [group["params"] for group in copies.optimizer.param_groups]
        return [parameter for group in groups for parameter in group]
    own = copies.loss.parameters() if isinstance(copies.loss, nn.Module) else ()
    return [p for p in (*copies.model.parameters(), *own) if p.requires_grad]


def _name(optimizer: torch.optim.Optimizer) -> str:
    rate = optimizer.param_groups[0].get("lr")
    return type(optimizer).__name__ + (f"(lr={float(rate):g})" if rate is not None else "")
