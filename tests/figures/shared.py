"""Runs that several tests read, made once a process."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.figures.made import FINDINGS, write_training

# What each sink would take for something else. A prefix, so that names stay different.
HOSTILE = (
    "<script>pwned()</script></script><!--<img src=x onerror=pwned()>\"'><svg onload=pwned()>"
    "<b>b</b><a href='javascript:pwned()'>a</a>%{x}%{customdata}$\\alpha$[bold red]m[/]\x1b[31m\x07"
    "\u202eabc\u2028&lt;i&gt;\r\n=1+1|cmd "
)


@cache
def folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="nethook-figures-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def training() -> Path:
    """A run with two faults."""
    return write_training(folder() / "training.db")


@cache
def changed() -> Path:
    """The same run until step 61, and another from there on."""
    return write_training(folder() / "changed.db", change_at=61, rate=0.2)


def hostile_name(name: str) -> str:
    """A name that still begins with "@" where it has to, and is odd in every other way."""
    if name.startswith("@"):
        return name if name == "@loop" else f"@loss:{HOSTILE}{name[6:]}"
    return f"{HOSTILE}{name}"


@cache
def hostile() -> Path:
    """A run with such a name in every text."""
    findings = [
        {
            **{name: f"{HOSTILE}{name}" for name in ("message", "fix")},
            "code": f"{finding['code']}",
            "severity": finding["severity"],
            "sites": [hostile_name(str(site)) for site in finding["sites"]],
            "first_step": finding["first_step"],
            "last_step": finding.get("last_step"),
            "evidence": {
                f"silent{HOSTILE}": {"value": HOSTILE, "threshold": 0.5, "quantity": HOSTILE},
                "number": 1.5,
            },
            "consequences": [HOSTILE, {"code": HOSTILE, "message": HOSTILE}],
        }
        for finding in FINDINGS
    ]
    findings.append({"code": HOSTILE, "severity": HOSTILE, "first_step": HOSTILE, "sites": HOSTILE})
    return write_training(
        folder() / "hostile.db", 30, findings=findings, rename=hostile_name, info={HOSTILE: HOSTILE}
    )
