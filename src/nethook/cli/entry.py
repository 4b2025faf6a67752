"""The entry point of `nethook` and of `python -m nethook`.

`nethook run` goes its own way: the script that it runs must not find typer and what that brings
imported, and its errors must not pass through typer's hands.
"""

import sys


def main() -> None:
    """Run the command line."""
    if not sys.flags.safe_path:
        # The folder of the command; with `python -m` the one that it was called in. What lies there
        # is not for nethook to import. (So nothing has been imported up to here.)
        del sys.path[0]
    if sys.argv[1:2] == ["run"]:
        from nethook.cli.commands.run import main as run

        run(sys.argv[2:])
    else:
        from nethook.cli.main import main as others

        others()
