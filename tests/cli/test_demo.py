"""`nethook demo`: two runs, of which one has a fault that its verdict shows, with a proven fix."""

from __future__ import annotations

import re
from pathlib import Path

from tests.running.both import Warm


def test_the_demo_shows_a_healthy_run_and_dead_units(tmp_path: Path) -> None:
    warm = Warm()
    folder = tmp_path / "folder"
    folder.mkdir()
    done = warm.run("-m", "nethook", "demo", "--to", "out", cwd=folder)
    warm.stop()
    assert done.code == 0
    trials = (
        "nethook: trial 1 of 2, the script as it is\nnethook: trial 2 of 2, learning rate 0.1 → "
    )
    assert done.err.startswith(trials)
    assert done.err.count("\n") == 2
    healthy, faulty = re.split(r"\$ nethook run --budget none(?: --try-fix)? digits.py", done.out)[
        1:
    ]
    assert "100% of 128 new digits are read rightly" in healthy
    assert re.search(r"Net, 10 layers, 128 steps", healthy)
    assert "never active" not in healthy
    assert re.search(r"dead all through the last quarter: (5|6)\d of 64 of 'relu3'", faulty)
    assert re.search(r"loss 2\.\d+ → \d\.\d+  \(digits\.py:\d+, mean over samples\)", faulty)
    proof = r"tried: learning rate 0\.1 → \S+: training loss after 128 steps 2\.\d+ → 0\.\d+\. It h"
    assert re.search(proof, " ".join(faulty.split()))
    made = sorted(
        re.split(r"-\d{4}-\d\d-\d\dT", path.name)[0] for path in (folder / "out").glob("*.db")
    )
    assert made == ["demo-dead-units", "demo-healthy"]
    assert (folder / "out" / "digits.py").exists()
