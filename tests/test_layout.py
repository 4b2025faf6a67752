"""Tests mirror the sources, and do not import one another."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "nethook"
SOURCES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")
)

# Sources without a test file of their own, by room. Take a line away with the test that it lacks;
# no line may be added.
WITHOUT_TESTS: dict[str, str] = {
    "addresses": "lazy_parameters",
    "doctor": "finding history phrases rule settings",
    "doctor/rules": (
        "adam_instability bad_init_scale batchnorm_small_batch class_collapse "
        "clipped_before_unscale clipping_too_tight dead_units eval_mode_training "
        "exploding_gradient gradient_wiped input_collapsed input_ignored "
        "input_not_normalized learning_rate_too_high learning_rate_too_low loss_broadcast "
        "loss_target_mismatch missing_activation missing_step missing_zero_grad "
        "negative_loss no_gradient non_finite not_learning optimizer_misses_parameters "
        "oscillating_loss output_range overfitting repeated_batch replica_divergence "
        "saturated_activation scheduler_collapse softmax_before_cross_entropy "
        "symmetric_init train_mode_evaluation unscaled_accumulation unused_module "
        "vanishing_gradient weight_decay_too_strong"
    ),
    "doctor/signals": "first_loss layers linear",
    "drawing": "data depth module_tree quantities",
    "editing/callbacks": "gradient_check monitors penalties",
    "editing": "calling changes edits entries",
    "examining/checkup": "batch checks copies dead_units modes result trial",
    "exporting": "folder tables tensorboard",
    "extracting": "batches columns fingerprint index loader pooling shard shard_writer",
    "hooks/canaries": "functions modules registry tensors threads",
    "init/calibration": "from_shapes result",
    "init/dataflow": "composites fans recorder residuals roles",
    "init/gains": "activations quadrature",
    "init/plans": "methods rows sampling scales",
    "init/proof": "report",
    ".": "private_names types",
    "restoring": "copies python_state",
    "runs/format": "schema validate window",
    "runs": "names",
    "runs/reading": "rank_file results scalars sessions show snapshots",
    "runs/secrets": "harmless names",
    "runs/writing": "connection opening resume store thread",
    "stats/native": "binding kernel",
    "stats": "rows sampling",
    "text": "finding_lines paragraphs",
    "tracing/autograd": "node",
    "tracing": "options taps",
    "tracing/sites": "site_map",
    "tracing/tape": "calls describe entry op_records parameter_record record site_calls",
    "watching": "attach compiled_cost protocols session",
    "watching/clock": "call_order loop passes step_hooks steps track witnesses",
    "watching/facts": "averaging earlier facts op_order rebinding telling",
    "watching/flight": "culprit file loss ranges replay_ops",
    "watching/losses": "calls graph kinds record values",
    "watching/measuring": "batches device_flags loop_numbers parameters series snapshots taps",
}


def imported_modules(source: str) -> set[str]:
    """The modules that a program imports, in full; of `from a import b` both a and a.b.

    Texts in it count as well, if they are programs that import tests.
    """
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and _imports_tests(node.value):
            with suppress(SyntaxError):
                imported |= imported_modules(node.value)
    return imported


def _imports_tests(text: object) -> bool:
    return isinstance(text, str) and bool(re.search(r"\b(from|import) tests\b", text))


def imported_tests(source: str) -> list[str]:
    """The test modules among them."""
    if "tests" not in source:
        return []
    matches = (re.match(r"tests\.(\w+\.)*?test_\w+", name) for name in imported_modules(source))
    return sorted({match[0] for match in matches if match})


def importers() -> list[Path]:
    folders = (ROOT / name for name in ("tests", "tools", "benchmarks", "zoo"))
    everything = {path for folder in folders for path in folder.rglob("*.py")}
    return sorted(everything - {Path(__file__)})  # its examples are below


def test_nothing_imports_a_test() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in importers()
        if (names := imported_tests(path.read_text(encoding="utf-8")))
    }
    assert not found, f"Move what they share to a module without tests: {found}"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from tests.running.test_scripts import CASES", ["tests.running.test_scripts"]),
        ("from tests.running import test_scripts", ["tests.running.test_scripts"]),
        ("import tests.test_docs as docs", ["tests.test_docs"]),
        ("PROGRAM = 'import sys\\nfrom tests.test_docs import x'", ["tests.test_docs"]),
        ("from tests.zoo import observe", []),
        ("'what tests import, as a sentence'", []),
    ],
)
def test_the_search_for_imports_can_fail(source: str, names: list[str]) -> None:
    assert imported_tests(source) == names


def mirror_of(source: Path) -> Path:
    """Where the tests of a source file are: `hooks/audit.py` in `tests/hooks/test_audit.py`."""
    inside = source.relative_to(PACKAGE)
    return TESTS / inside.with_name(f"test_{inside.name}")


def test_every_source_file_has_its_tests() -> None:
    excepted = {
        f"{room}/{name}.py".removeprefix("./")
        for room, names in WITHOUT_TESTS.items()
        for name in names.split()
    }
    missing = {
        path.relative_to(PACKAGE).as_posix() for path in SOURCES if not mirror_of(path).exists()
    }
    assert missing - excepted == set(), "They need tests/<room>/test_<file>.py."
    assert excepted - missing == set(), "They have tests now: take them out of WITHOUT_TESTS."
