"""The examples run as a user runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_mnist() -> None:
    output = run("mnist.py", "--epochs", "2", "--seed", "1")
    accuracy = re.search(r"^test accuracy ([\d.]+)%", output, re.MULTILINE)
    assert accuracy
    # Two epochs instead of six: `make demo` shows the whole training.
    assert float(accuracy[1]) > 80
    assert re.search(r"^hooks on the model before and after: 0 and 0$", output, re.MULTILINE)
    assert "bit-identical with and without nethook: True" in output

    # Three rectifiers; a unit of a convolution is one of its maps.
    units = dict(re.findall(r"^(\w+(?:, call \d)?) .* \d+ of (\d+) ", output, re.MULTILINE))
    assert units == {"relu, call 0": "32", "relu, call 1": "64", "fc1": "512"}

    # It reads well in a log: no lines that are too long, no codes for a terminal.
    assert max(map(len, output.splitlines())) <= 80
    assert not set(output) & {"\x1b", "\r"}
