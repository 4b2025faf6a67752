"""Which tests guard a file of the room `hooks/`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "src" / "nethook" / "hooks"
TESTS = ROOT / "tests" / "hooks"
# Tests beyond a file's own that guard it: arguments of pytest, one run each, the quickest first.
_OPS = "tests/hooks/ops/test_watch.py tests/hooks/ops/test_consumer.py"
_OPS_USED = (
    "tests/tracing/test_ops.py tests/tracing/sites/test_survey.py tests/editing/test_ops.py"
    " -k 'not zoo and not by_hand and not returns_none'"  # these run hundreds of models
)
_SCOPES = ("tests/tracing/test_scope.py tests/tracing/tape/test_tape.py",)
_CELLS = "tests/modes/test_matrix.py -k"
GUARDS: dict[str, tuple[str, ...]] = {
    **{f"ops/{file.name}": (_OPS, _OPS_USED) for file in ROOM.glob("ops/*.py")},
    "ops/watch.py": (_OPS_USED,),
    "attachment.py": _SCOPES,
    "process/export.py": (f"{_CELLS} 'test_cell and Export'",),
    "wrapped.py": ("tests/hooks/test_audit.py", "tests/hooks/process/test_loss_functions.py"),
    "autograd/gradients.py": ("tests/hooks/process/test_optimizers.py", *_SCOPES),
    "hook.py": ("tests/hooks/test_threads.py tests/hooks/test_audit.py", *_SCOPES),
    "compile/graph.py": (
        "tests/modes/test_graphs.py",
        f"{_CELLS} 'test_cell and torch.compile and views'",
    ),
    "autograd/lazy_copy.py": ("tests/tracing/test_keep.py",),
    "registries.py": ("tests/hooks/test_audit.py",),
    "process/discovery.py": ("tests/running/detecting/test_following.py",),
    "autograd/nodes.py": ("tests/editing/callbacks/test_nodes.py",),
    "modes.py": _SCOPES,
    "layouts/unhookable.py": ("tests/hooks/test_audit.py", *_SCOPES),
    "layouts/dtensor.py": ("tests/tracing/test_keep.py",),
    "suspend.py": ("tests/hooks/test_audit.py",),
    "threads.py": (f"{_CELLS} 'test_cell and Threads and not spawn and not DataLoader'",),
}


def named(file: Path) -> str:
    """A file of the room as it is called here: `autograd/gradients.py`."""
    return file.relative_to(ROOM).as_posix()


def tests_for(file: Path, *, own: bool) -> list[list[str]]:
    """The tests of a file, as arguments of pytest: its own come first, and kill most."""
    first = TESTS / Path(named(file)).with_name(f"test_{file.name}")
    runs = [[str(first)]] if first.exists() else []
    if not own:
        runs += [shlex.split(command) for command in GUARDS.get(named(file), ())]
    if not runs:
        sys.exit(
            f"no tests for {named(file)}: write {first.relative_to(ROOT)}, or name some in GUARDS"
        )
    return runs
