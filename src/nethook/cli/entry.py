"""The entry point of `nethook` and of `python -m nethook`.

`nethook run` goes its own way: the script that it runs must not find typer and what that brings
imported, and its errors must not pass through typer's hands.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["run"]:
        from nethook.cli.run import main as run

        run(sys.argv[2:])
    else:
        from nethook.cli.main import main as others

        others()
