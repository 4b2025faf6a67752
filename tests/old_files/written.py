"""The files that 0.1 wrote, unpacked for a test. `make.py` wrote them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "v0.1"
RUNS = ("healthy", "dead", "nan", "gan", "ranks", "killed", "crashed")


def unpacked(folder: Path, name: str) -> Path:
    """All files of a case, in `folder`; the path of the run, recipe, plan or folder itself."""
    for kept in sorted(KEPT.rglob("*")):
        inside = kept.relative_to(KEPT)
        if kept.is_dir() or inside.parts[0].partition(".")[0] != name:
            continue
        is_packed = inside.suffix == ".gz"
        target = folder / (inside.with_suffix("") if is_packed else inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.decompress(kept.read_bytes()) if is_packed else kept.read_bytes())
    paths = (folder / f"{name}{suffix}" for suffix in (".db", ".json", ""))
    return next(path for path in paths if path.exists())


def expected(name: str) -> dict[str, Any]:
    """What plain torch said of the same training, and the codes of 0.1's findings."""
    text = (KEPT / f"{name}.expected.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
