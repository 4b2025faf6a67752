"""What the programs of the zoo declare: enough of every kind, and every look-alike."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

from nethook.doctor.rules import own_rules

ZOO = Path(__file__).resolve().parents[2] / "zoo"


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    """`zoo/measure.py`, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("zoo_measure", ZOO / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["zoo_measure"] = module
    spec.loader.exec_module(module)
    return module


# Of the catalogue's list of runs that look ill and are not: the programs that are such runs.
LOOK_ALIKES = {
    "sparse rectifiers": ["healthy_sparse_rectifiers"],
    "zero-initialised residual gates": ["healthy_zero_gates"],
    "the second matrix of an adapter": ["healthy_low_rank_adapters"],
    "a frozen backbone": ["healthy_frozen_backbone"],
    "frozen batch norms": ["fresh_healthy_frozen_norms"],
    "rare tokens": ["healthy_rare_tokens"],
    "out_proj, embeddings used through .weight": ["healthy_tied_language_model"],
    "an unused pooler": ["healthy_unused_pooler"],
    "linear bottlenecks": ["healthy_linear_bottleneck"],
    "value and output projections, softmax inside attention": ["healthy_attention_by_hand"],
    "adversarial pairs": ["healthy_gan", "fresh_healthy_gan_detach"],
    "PPO": ["fresh_healthy_ppo"],
    "rightly negative losses": [
        "healthy_wasserstein", "healthy_log_density", "healthy_policy_gradient",
        "healthy_cosine_loss",
    ],
    "warm-up": ["healthy_warmup_cosine"],
    "one cycle": ["healthy_one_cycle"],
    "cosine restarts": ["healthy_cosine_restarts"],
    "linear decay to zero": ["fresh_healthy_linear_decay"],
    "a plateau before a late drop": ["healthy_late_drop"],
    "SGD at 0.1 with batch norm": ["healthy_sgd_tenth"],
    "noisy evaluations": ["healthy_noisy_evaluation"],
    "idle experts": ["healthy_mixture_of_experts"],
    "gates near their ends": ["healthy_lstm"],
    "full batches": [
        "fresh_healthy_graph", "healthy_full_batch_physics", "healthy_overfit_one_batch",
    ],
    "accumulation done right": ["healthy_accumulation"],
    "dropout and batch norm used right": ["healthy_cnn_batchnorm", "fresh_healthy_short_run"],
    "a scaler's skipped steps": ["healthy_scaler_skips"],
    "-inf and finfo.min masks": ["fresh_healthy_masks"],
    "momentum teachers": ["healthy_momentum_teacher"],
    "update_bn": ["healthy_averaged_weights"],
    "Monte-Carlo dropout": ["healthy_monte_carlo_dropout"],
    "reentrant checkpointing": ["healthy_checkpointed"],
    "the floor of label smoothing": ["healthy_label_smoothing"],
    "very small losses": ["healthy_tiny_loss"],
    "very large losses, unbounded targets": ["healthy_large_regression"],
    "fine-tuning at a tiny rate": ["healthy_tiny_rate_finetune"],
    "gradient penalties": ["healthy_second_order"],
    "decay by group": ["healthy_decay_by_group"],
}  # fmt: skip
NO_PROGRAM = {
    "doubtful-result",  # no fault of its own: what is left where no rule knows the fault
    "replica-divergence",  # it takes several processes
}


def test_there_are_programs_enough(measure: ModuleType) -> None:
    programs = measure.programs()
    codes = {each.expect for each in programs if not each.healthy}
    assert len([each for each in programs if each.healthy]) >= 40
    assert len(codes) >= 32
    texts = [path.read_text(encoding="utf-8") for path in (ZOO / "wild").glob("*/*.py")]
    published = set(re.findall(r"^expect: ([\w-]+)$", "\n".join(texts), re.MULTILINE))
    assert codes <= {rule.code for rule in own_rules()} - NO_PROGRAM
    assert {rule.code for rule in own_rules()} - NO_PROGRAM <= codes | published


def test_every_code_has_two_kinds_of_networks(measure: ModuleType) -> None:
    nets = defaultdict(set)
    for each in measure.programs():
        nets[each.expect].add(each.net)
    assert not {code: kinds for code, kinds in nets.items() if len(kinds) < 2}
    known = {"mlp", "cnn", "rnn", "transformer", "autoencoder", "regression", "graph", "healthy"}
    assert set().union(*nets.values()) <= known


def test_every_code_is_in_both_halves(measure: ModuleType) -> None:
    halves = defaultdict(set)
    for each in measure.programs():
        halves[each.expect].add(each.half)
    assert all({"first", "second"} <= parts for parts in halves.values())


def test_every_look_alike_is_there(measure: ModuleType) -> None:
    healthy = {each.name for each in measure.programs() if each.healthy}
    for what, names in LOOK_ALIKES.items():
        assert set(names) <= healthy, what


def test_what_is_declared_is_known(measure: ModuleType) -> None:
    known = {rule.code for rule in own_rules()}
    for each in measure.programs():
        assert each.half in ("first", "second", "fresh")
        if not each.healthy:
            assert each.codes <= known, each.name
            assert each.expect not in each.equal
    assert sum(bool(each.site) for each in measure.programs()) >= 20


def test_no_program_knows_nethook() -> None:
    for path in (ZOO / "programs").glob("*.py"):
        assert not re.search(r"^\s*(import|from) nethook", path.read_text(), re.M), path.name


def test_figures_below_the_targets_are_told(measure: ModuleType) -> None:
    score = measure.Score(runs=100, found=96, first=91, sites=20, right_sites=18, healthy=100)
    assert score.missed() == []
    score.alarms = 4
    score.found = 93
    assert score.missed() == ["recall", "false alarms"]
    small = measure.Score(runs=10, found=9, first=9, healthy=30, alarms=1)
    assert small.missed() == []


def test_the_quick_part_has_every_code_once(measure: ModuleType) -> None:
    quick = measure._quick(measure.programs())
    ill = [each.expect for each in quick if not each.healthy]
    codes = {each.expect for each in measure.programs() if not each.healthy}
    assert len(ill) == len(set(ill)) == len(codes)
    assert len([each for each in quick if each.healthy]) >= 30
