"""Every code of the catalogue has one rule, with its documentation and the fields that it reads."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

from nethook.doctor import rules
from nethook.doctor.rule import Cause
from nethook.doctor.rules import own_rules

DOCS = Path(__file__).resolve().parents[2] / "docs"
CATALOGUE = [
    "missing-step",
    "missing-zero-grad",
    "gradient-wiped",
    "call-without-effect",
    "optimizer-misses-parameters",
    "no-gradient",
    "unregistered-layers",
    "stale-optimizer",
    "eval-mode-training",
    "train-mode-evaluation",
    "clipped-before-unscale",
    "unscaled-accumulation",
    "weights-not-restored",
    "bottleneck-too-narrow",
    "scheduler-collapse",
    "softmax-before-cross-entropy",
    "loss-target-mismatch",
    "loss-broadcast",
    "target-misaligned",
    "sees-the-future",
    "target-shifted",
    "target-is-input",
    "samples-mixed",
    "random-evaluation",
    "negative-loss",
    "output-range",
    "output-misfits-loss",
    "padding-dominates",
    "unbalanced-loss-terms",
    "unshuffled-data",
    "evaluation-scale",
    "input-not-normalized",
    "target-not-normalized",
    "input-collapsed",
    "input-ignored",
    "padding-read",
    "repeated-batch",
    "shared-layers",
    "symmetric-init",
    "bad-init-scale",
    "missing-activation",
    "learning-rate-too-high",
    "learning-rate-too-low",
    "oscillating-loss",
    "diverged",
    "weight-decay-too-strong",
    "clipping-too-tight",
    "adam-instability",
    "update-below-precision",
    "batchnorm-small-batch",
    "dead-units",
    "saturated-activation",
    "vanishing-gradient",
    "exploding-gradient",
    "non-finite",
    "class-collapse",
    "not-learning",
    "missing-terminal-mask",
    "axes-scrambled",
    "softmax-over-one",
    "position-ignored",
    "critic-in-policy-loss",
    "optimizer-recreated",
    "term-without-gradient",
    "doubtful-result",
    "overfitting",
    "unused-module",
    "replica-divergence",
]


def modules() -> list[ModuleType]:
    return [
        importlib.import_module(f"{rules.__name__}.{folder}.{each.name}")
        for folder in rules.FOLDERS
        for each in pkgutil.iter_modules([f"{path}/{folder}" for path in rules.__path__])
    ]


def test_every_code_has_exactly_one_rule() -> None:
    assert sorted(rule.code for rule in own_rules()) == sorted(CATALOGUE)


def test_a_rule_is_in_the_file_of_its_code() -> None:
    for module in modules():
        name = module.__name__.rpartition(".")[2]
        assert module.RULE.code == name.replace("_", "-")


@pytest.mark.parametrize("module", modules(), ids=lambda each: each.__name__.rpartition(".")[2])
def test_a_rule_is_documented(module: ModuleType) -> None:
    text = module.__doc__ or ""
    parts = [text.find(f"\n{part}: ") for part in ("Cause", "Evidence", "Fix", "Silent")]
    assert all(part > 0 for part in parts)
    assert parts == sorted(parts)
    assert text.splitlines()[0].endswith(".")


@pytest.mark.parametrize("rule", own_rules(), ids=lambda rule: rule.code)
def test_a_rule_reads_what_is_documented(rule: rules.Rule) -> None:
    """Every field is in docs/run-file.md, and in the list of docs/doctor.md."""
    fields = (DOCS / "run-file.md").read_text(encoding="utf-8")
    listed = (DOCS / "doctor.md").read_text(encoding="utf-8")
    for field in rule.reads:
        kind, _, name = field.partition(".")
        words = name.split(".")
        named = words[-2] if kind == "series" and words[-2] != "info" else words[-1]
        assert f"`{named}" in fields or f"{named}`" in fields or f"`{kind}" in fields, field
        assert f"`{field}`" in listed, field


@pytest.mark.parametrize("rule", own_rules(), ids=lambda rule: rule.code)
def test_a_rule_names_its_fields_and_its_thresholds(rule: rules.Rule) -> None:
    assert rule.reads
    assert len(set(rule.reads)) == len(rule.reads)
    assert isinstance(rule.defaults, tuple)  # of all classes those that are made fastest
    assert rule.threshold_names
    assert all(isinstance(getattr(rule.defaults, name), int | float)
               for name in rule.threshold_names)  # fmt: skip
    assert rule.cause in Cause
