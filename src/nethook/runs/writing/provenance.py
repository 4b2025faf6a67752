"""What ran: the command, versions, devices and the git revision. Never the environment."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from nethook.files import read_file
from nethook.runs.secrets.masking import masked_arguments

_PACKAGES: Final = ("nethook", "torch", "numpy", "transformers", "lightning", "accelerate")


def about_this_process() -> dict[str, Any]:
    """Plain data about the running program, with secrets masked."""
    script = _script()
    # A notebook or a prompt has no script; its folder is the one that people know it by.
    try:
        start = Path(script).resolve().parent if Path(script).is_file() else Path.cwd()
    except OSError:  # the folder that it works in was removed
        start = Path("/")
    return {
        "command": command(),
        "versions": _versions(),
        "platform": _platform(),
        "devices": _devices(),
        "git": git_revision(start),
    }


def command(*, keep_args: bool = False) -> list[str]:
    """The command that started this program: the interpreter, the script, and its arguments.

    The script's path is kept as it was given: it says what ran, and so do the source lines of the
    losses. Of its arguments only what is known to be harmless is kept, unless all were asked for.
    """
    arguments = sys.argv[1:]
    kept = arguments if keep_args else masked_arguments(arguments)
    return [Path(sys.executable).name, _script(), *kept]


def _script() -> str:
    return sys.argv[0] if sys.argv else ""


def _platform() -> str:
    """What `platform.platform()` says, without the `uname -p` that it would start."""
    try:
        system = f"{platform.system()}-{platform.release()}-{platform.machine()}"
        libc = "".join(platform.libc_ver())
    except OSError:  # it reads the interpreter's file, which may not be readable
        return sys.platform
    return f"{system}-with-{libc}" if libc else system


def git_revision(folder: Path) -> dict[str, str] | None:
    """Branch and commit of the repository that `folder` is in, read from its files.

    No process is started: a training script may hold devices and threads that do not survive it.
    """
    try:
        for parent in (folder, *folder.parents):
            if (git := parent / ".git").exists():
                return _head(git)
    except (OSError, ValueError):
        pass  # a repository that cannot be read is no reason to fail
    return None


def _head(git: Path) -> dict[str, str] | None:
    if git.is_file():  # a worktree or a submodule: "gitdir: path"
        git = git.parent / _text(git).partition(":")[2].strip()
    common = git
    if (pointer := git / "commondir").is_file():
        common = git / _text(pointer).strip()
    head = _text(git / "HEAD").strip()
    if not head.startswith("ref:"):
        return {"commit": head[:64]}
    ref = head.partition(":")[2].strip()
    branch = ref.removeprefix("refs/heads/")
    for file in (git / ref, common / ref):
        if file.is_file():
            return {"commit": _text(file).strip()[:64], "branch": branch}
    if (packed := common / "packed-refs").is_file():
        for line in _text(packed).splitlines():
            commit, _, name = line.partition(" ")
            if name == ref:
                return {"commit": commit[:64], "branch": branch}
    return {"branch": branch}  # no commit yet


def _text(path: Path) -> str:
    return read_file(path, most=1 << 24).decode()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = _version(name)
        except PackageNotFoundError:
            continue
    return versions


def _version(name: str) -> str:
    """The version of a package. Python would read its whole description for that."""
    package = distribution(name)
    said = re.search(r"^Version: *(\S+)", package.read_text("METADATA") or "", re.MULTILINE)
    return package.version if said is None else said[1]


def _devices() -> list[str]:
    """The devices that torch knows, without waking one that sleeps."""
    torch: Any = sys.modules.get("torch")  # a program without torch has no use for its devices
    devices = [f"cpu: {platform.machine()}"]
    if torch is None:
        return devices
    try:
        cuda = torch.cuda
        # Asking a device for its name would start CUDA, and a process with CUDA cannot fork.
        if cuda.is_initialized():
            devices += [
                f"cuda:{index}: {cuda.get_device_name(index)}"
                for index in range(cuda.device_count())
            ]
        else:
            devices += [f"cuda:{index}" for index in range(cuda.device_count())]
        if torch.backends.mps.is_available():
            devices.append("mps")
    except Exception:  # drivers fail in many ways, and none of them is our business
        devices.append("unknown: torch could not list its devices")
    return devices
