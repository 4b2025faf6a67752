"""`make quick`: the tests that are worth waiting for after every change, in less than a minute.

Three rules choose them, and `make test` knows none of them:

- What `SLOW` names is left out, unless the command names it.
- A test with several cases runs with the first `CASES` of them, and Hypothesis tries at most
  `EXAMPLES` examples.
- The exhibits of the zoo are dealt out: every exhibit, and so every mechanism, is run by one of the
  tests that take exhibits, and every such test gets its share.

`make quick ARGS=tests/hooks`, or `python -m pytest --quick tests/hooks`, does so for one room.
To see which tests take long: `python -m pytest --quick --durations=20`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = ROOT / "tests"
CASES: Final = 1
EXAMPLES: Final = 10

# Folders, files, tests, and exhibits of a test, below tests/ that take about a second or more of
# processor time, and why.
SLOW: Final = {
    "start Python or a server": (
        "running/test_startup.py",
        "watching/clock/test_clock.py::test_it_imports_no_torch",
        "addresses/test_wrappers.py::test_a_walk_does_not_import_the_compiler",
        "cli/commands/test_demo.py",
        "cli/test_entry.py",
        "cli/test_main.py",
        "cli/commands/test_run.py",
        "cli/commands/test_sites.py::test_a_tree_on_the_command_line",
        "extracting/test_extract_processes.py",
        "faults",
        "hooks/canaries/test_newer.py",
        "hooks/canaries/test_report.py",
        (
            "hooks/ops/test_checkpoints.py::"
            "test_what_a_first_checkpoint_imports_is_no_operation_of_the_model"
        ),
        "hooks/test_hook.py::test_a_file_loads_and_runs_the_same_where_nethook_cannot_be_imported",
        "modes",
        "page/live/test_serving.py",
        "running/test_children.py",
        "running/test_disks.py",
        "running/test_examples_are_healthy.py",
        "running/detecting/test_following.py",
        "running/test_imports.py",
        "running/test_many_nodes.py",
        "running/test_program.py",
        "running/test_runner.py",
        "running/test_saving.py",
        "running/test_scripts.py",
        "running/test_tracebacks.py",
        "running/trying",
        "runs/test_faults.py",
        "stats/native/test_readable.py::test_the_guard_may_be_imported_in_any_mode",
        "test_import_is_light.py",
        "test_packaging.py",
        "test_preflight.py::test_the_experiments_know_nothing_of_watching",
        "test_printed.py",
        "test_private_names.py::test_a_path_is_followed_and_imported_on_the_way",
        "test_private_names.py::test_the_plain_way_can_be_asked_for",
        "test_rooms.py::test_the_import_contract_can_fail",
        "test_rooms.py::test_a_room_that_nobody_planned_breaks_the_contract",
        "test_torches.py",
        "watching/test_disks.py",
        "watching/test_without_kernel.py",
    ),
    "compile models": (
        "hooks/compile",
        "hooks/process/test_optimizers.py::test_a_compiled_step_calls_the_hooks_as_they_are",
        "stats/test_torch_kernel.py",
    ),
    "read every source file": (
        "test_errors.py::test_errors_about_arguments_follow_one_template",
        "test_layout.py::test_nothing_imports_a_test",
        "test_rooms.py::test_no_module_reaches_itself_by_imports",
        "test_torch_private.py::test_no_other_file_uses_a_private_name_of_torch",
    ),
    "run documents and examples": ("test_docs.py", "test_examples.py", "test_notes.py", "trainers"),
    "train models for long": (
        "examining",
        "init/calibration/test_calibrator.py",
        "init/test_proof.py",
        "init/test_zoo.py::test_planning_and_verifying_change_nothing[wide]",
        "restoring/test_zoo.py::test_a_checkup_leaves_nothing_behind",
        "test_preflight.py::test_what_records_is_handed_in_and_read_before_its_file_goes",
        "running/demo/test_demo.py::test_a_run_leaves_a_file_and_a_verdict",
        "watching/test_budget_simulation.py",
        "watching/test_loss_means.py",
        "old_files",
        "watching/test_quiet_steps.py",
        "watching/flight",
        "watching/test_threads.py::test_threads_that_step_at_once_are_not_inside_each_other",
        "watching/test_fields_for_findings.py",
        "watching/test_resume.py",
    ),
    "write much, or do something at every line": (
        "page/report/test_report.py",
        "classic/test_instrumented_calls.py",
        "cli/commands/test_diff.py",
        "cli/commands/test_export.py::test_the_words_of_0_1_still_work",
        "cli/commands/test_report.py",
        "exporting/test_export.py::test_tensorboard_reads_scalars_and_histograms",
        "exporting/test_tensorboard.py",
        "cli/commands/test_version.py",
        "editing/test_recipes.py::test_whatever_a_file_holds_it_loads_as_edits_or_is_refused",
        "extracting/test_dataset.py::test_fuzz",
        "figures/test_reading.py::test_a_long_run_keeps_its_extrema_in_few_columns",
        "hooks/autograd/test_gradients.py",
        "hooks/test_saving.py",
        "hooks/test_saving_zoo.py",
        "runs/reading/test_safe_sqlite.py::test_flipped_bytes_are_read_or_refused",
        "runs/test_native_packing.py",
        "test_torch_private.py::test_nethook_works_the_plain_way",
        "tracing/attention/test_probs.py::test_they_are_those_of_eager_attention",
        "restoring/test_undo.py::test_an_interrupt_at_any_line_of_putting_back_loses_nothing",
        (
            "runs/writing/test_truncate.py::"
            "test_a_run_that_was_taken_back_is_as_if_it_had_never_gone_further"
        ),
    ),
}
NAMES: Final = frozenset(name for names in SLOW.values() for name in names)


def is_left_out(path: Path, arguments: Sequence[str]) -> bool:
    """Whether a file or folder is slow, and no argument of the command names it or lies in it."""
    if not path.is_relative_to(TESTS) or path.relative_to(TESTS).as_posix() not in NAMES:
        return False
    named = [(ROOT / argument.partition("::")[0]).resolve() for argument in arguments]
    return not any(path == wanted or path in wanted.parents for wanted in named)


def takes_first_cases(arguments: Sequence[str], only_failures: bool = False) -> bool:
    """Whether cases after the first ones need not be collected: the command asks for none of them.

    Arguments:
        arguments: the files and tests that the command names, such as `tests/a.py::test_it[2]`.
        only_failures: whether it asks for what failed last (`--lf`), which may be any case.
    """
    return not only_failures and not any("[" in argument for argument in arguments)


def first_cases(cases: list[Any]) -> list[Any]:
    """The cases of one test (pytest's own objects) that `chosen` may take."""
    return cases if cases and "exhibit" in cases[0].params else cases[:CASES]


def chosen(tests: Sequence[tuple[str, dict[str, Any]]], arguments: Sequence[str]) -> list[bool]:
    """Which tests are quick ones, in the order of collection.

    Arguments:
        tests: of each its id and its parameters, such as
            `("tests/hooks/test_order.py::test_it[2]", {"size": 2})`.
        arguments: the files and tests that the command names.
    """
    cases: defaultdict[str, list[int]] = defaultdict(list)
    exhibits: defaultdict[str, list[int]] = defaultdict(list)
    for index, (name, parameters) in enumerate(tests):
        function = name.partition("[")[0]
        names = {function, name}
        is_slow = not NAMES.isdisjoint(each.removeprefix("tests/") for each in names)
        if is_slow and names.isdisjoint(arguments):
            continue
        if "exhibit" in parameters:
            exhibits[parameters["exhibit"].name].append(index)
        else:
            cases[function].append(index)
    taken = {index for indices in cases.values() for index in indices[:CASES]}
    # The n-th exhibit goes to the n-th of its tests, and round again.
    taken |= {indices[turn % len(indices)] for turn, indices in enumerate(exhibits.values())}
    return [index in taken for index in range(len(tests))]


def described(item: pytest.Item) -> tuple[str, dict[str, Any]]:
    """The id and the parameters of a test."""
    case = getattr(item, "callspec", None)
    return item.nodeid, case.params if case is not None else {}


def try_few_examples(item: pytest.Item) -> None:
    """Has Hypothesis try few examples where a test asks for more than its profile does."""
    function = getattr(item, "function", None)
    asked = getattr(function, "_hypothesis_internal_use_settings", None)
    if asked is not None and asked.max_examples > EXAMPLES:
        function._hypothesis_internal_use_settings = settings(asked, max_examples=EXAMPLES)
