"""The sources of another version, built so that a script can run with them."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
KEPT: Final = ROOT / "build" / "golden"
# Tags do not travel with every clone, commits of the history do. A tag that git knows comes first.
RELEASED: Final[dict[str, str]] = {
    "v0.1.0": "3d9dddd432e948fbc512a745b9c33ddfbcd6ce54",
}


def commit_of(revision: str, folder: Path = ROOT, released: Mapping[str, str] = RELEASED) -> str:
    """The full hash of a revision; of a release also where its tag is missing."""
    for name in (revision, released.get(revision, revision)):
        ask = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
        answer = subprocess.run(ask, cwd=folder, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return answer.stdout.strip()
    sys.exit(f"`base` must be a revision that git knows here; got {revision!r}. Fetch it first.")


def sources_of(commit: str) -> Path:
    """The sources of a commit with their native kernel, unpacked and built once."""
    folder = KEPT / commit[:12]
    done = folder / ".built"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        packed = subprocess.check_output(["git", "archive", commit], cwd=ROOT)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        (binding,) = (folder / "src").rglob("binding.cpp")
        build = [
            *("cmake", "-S", str(folder), "-B", str(folder / "build")),
            *(f"-DPython_EXECUTABLE={sys.executable}", f"-DNETHOOK_OUTPUT={binding.parent}"),
        ]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            ["cmake", "--build", str(folder / "build")], check=True, stdout=subprocess.DEVNULL
        )
        done.touch()
    return folder / "src"
