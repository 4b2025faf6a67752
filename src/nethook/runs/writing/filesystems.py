"""Whether a folder is on a network: SQLite's WAL needs shared memory, which networks lack."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_NETWORK: Final = frozenset(
    name
    for line in (
        "9p acfs afs beegfs ceph cifs coda davfs exafs fhgfs glusterfs gpfs lustre ncpfs nfs nfs4",
        "ocfs2 orangefs panfs prl_fs pvfs2 smb2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs",
    )
    for name in line.split()
)


def on_network(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether `folder` is on a network file system, as far as this machine says.

    Where it does not say (no Linux), the answer is no, and SQLite's own refusal decides.
    """
    kind = _kind(folder, mounts)
    # Whatever comes through FUSE is a program that may be anything: sshfs, buckets, a cluster.
    return kind in _NETWORK or kind.startswith("fuse.")


def _kind(folder: Path, mounts: Path) -> str:
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        resolved = folder.resolve()
    except OSError:
        return ""
    kind, depth = "", -1
    for line in lines:
        before, _, after = line.partition(" - ")
        parts = before.split(" ")
        if len(parts) < 5 or not after:
            continue
        point = Path(_unescaped(parts[4]))
        # Of two mounts on one point the later hides the earlier.
        if (resolved == point or point in resolved.parents) and len(point.parts) >= depth:
            kind, depth = after.split(" ")[0], len(point.parts)
    return kind


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
