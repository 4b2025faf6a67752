"""Networks are told from local disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.runs.writing.filesystems import on_network


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        ("ext4", False),
        ("xfs", False),
        ("tmpfs", False),
        ("overlay", False),
        ("fuseblk", False),
        ("nfs4", True),
        ("cifs", True),
        ("lustre", True),
        ("9p", True),
        ("fuse.sshfs", True),
        ("fuse.gcsfuse", True),
    ],
)
def test_the_innermost_mount_decides(kind: str, network: bool, tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    inner = tmp_path / "my data" / "runs"
    inner.mkdir(parents=True)
    escaped = str(tmp_path / "my data").replace(" ", "\\040")
    table.write_text(
        "20 1 8:1 / / rw - ext4 /dev/sda rw\n"
        f"21 20 0:5 / {escaped} rw,relatime shared:1 - {kind} server:/x rw\n"
        "broken line\n"
        "22 20 0:6 / /elsewhere rw - nfs server:/y rw\n"
    )
    assert on_network(inner, table) is network
    assert on_network(tmp_path, table) is False


def test_where_nothing_is_said_a_disk_is_local(tmp_path: Path) -> None:
    assert on_network(tmp_path, tmp_path / "missing") is False


def test_a_later_mount_hides_an_earlier_one(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text("1 0 0:1 / / rw - ext4 a rw\n2 0 0:2 / / rw - nfs a rw\n")
    assert on_network(tmp_path, table)
