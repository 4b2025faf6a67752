"""`--ui`: the page, served by a process of its own beside the script.

It is no child of the script's process, which may wait for all of its children; it comes second to
the training (`nice`); and it ends by itself a minute after the script has ended and the last
browser has gone.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Final

# Starts the server and ends, so that the server is nobody's child.
_LAUNCH: Final = (
    "import subprocess, sys; "
    "subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, "
    "start_new_session=True).returncode = 0"
)


def missing() -> str:
    """What to install before a page can be served; "" where all is there."""
    for name in ("plotly", "starlette", "uvicorn", "jinja2"):
        if find_spec(name) is None:
            return f"the page needs {name}, which is not installed: pip install 'nethook[ui]'"
    return ""


def start_page(to: str, *, show: bool = False) -> None:
    """Start the page of a run that is still to be written. It says its address on stderr.

    Arguments:
        to: the run file.
        show: open a browser.
    """
    import subprocess

    # The script's settings for warnings are not the page's, nor are its files (-P).
    python = [sys.executable, "-P", "-W", "ignore"]
    page = [*python, "-m", "nethook", "ui", to, "--wait", "--beside", str(os.getpid())]
    page += ["--open"] if show else []
    launcher = [*python, "-c", _LAUNCH, *page]
    subprocess.run(launcher, check=False, stdin=subprocess.DEVNULL, stderr=sys.__stderr__)
