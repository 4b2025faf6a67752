"""`nethook --version`: nethook, torch, and whether torch still has what nethook relies on."""

from __future__ import annotations

from collections.abc import Iterator

from nethook.torch_versions import torch_version, window


def lines() -> Iterator[str]:
    """One line per fact."""
    import nethook

    yield f"nethook {nethook.__version__}"
    version = torch_version()
    if version is None:
        yield "torch is not installed"
        return
    try:
        from nethook.hooks.canaries.report import failing
        from nethook.private_names import NAMES
    except ImportError as error:
        yield f"torch {version}: {error}"
        return
    changed = failing()
    yield f"torch {version} (tested with {window()})"
    if not changed:
        yield f"all {len(NAMES)} private names of torch that nethook uses work"
    for name in changed:
        kind = "plain way taken" if name.has_plain_way else "no other way"
        yield f"changed in this torch: {name.path} ({kind}; lost: {name.lost})"
