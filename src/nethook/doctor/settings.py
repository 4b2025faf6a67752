"""What a project has set about findings: `[tool.nethook]` in the nearest `pyproject.toml`.

    [tool.nethook]
    ignore = ["repeated-batch"]

    [tool.nethook.thresholds.dead-units]
    share = 0.4

Arguments come on top: codes to ignore are added, thresholds replace those of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from nethook.errors import OptionError

Changes: TypeAlias = Mapping[str, Mapping[str, float]]
"""Thresholds by code: `{"dead-units": {"share": 0.4}}`."""
_KEYS: Final = ("ignore", "thresholds")


@dataclass(frozen=True, slots=True)
class Settings:
    """Codes that are not reported, and thresholds that are not the usual ones."""

    ignore: frozenset[str] = frozenset()
    thresholds: Changes = field(default_factory=dict)
    path: Path | None = None  # the file that they are from

    def also(self, ignore: Iterable[str], thresholds: Changes | None) -> Settings:
        """These, and what a call says."""
        if isinstance(ignore, str):
            raise OptionError(
                f"`ignore` must be a list of codes; got {ignore!r}. Type [{ignore!r}]."
            )
        merged = {code: dict(values) for code, values in self.thresholds.items()}
        for code, values in (thresholds or {}).items():
            merged[code] = {**merged.get(code, {}), **values}
        return Settings(self.ignore | frozenset(ignore), merged, self.path)


def project_settings(folder: Path | None = None) -> Settings:
    """The settings of the project that a folder (the working directory) belongs to.

    Raises:
        OptionError: the file has something under `[tool.nethook]` that means nothing.
    """
    start = Path.cwd() if folder is None else folder
    for directory in (start, *start.parents):
        path = directory / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return Settings()


def _read(path: Path) -> Settings:
    import tomllib  # most runs are looked at where there is no such file

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("nethook", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return Settings()  # whoever needs that file says so
    if not isinstance(table, dict) or not table:
        return Settings()
    for key in table:
        if key not in _KEYS:
            raise OptionError(
                f"{path}: [tool.nethook] must have {' and '.join(_KEYS)} only; got {key!r}."
            )
    ignore, thresholds = table.get("ignore", []), table.get("thresholds", {})
    if not isinstance(ignore, list) or not all(isinstance(code, str) for code in ignore):
        raise OptionError(
            f"{path}: `ignore` must be a list of codes; got {ignore!r}. Type "
            'ignore = ["dead-units"].'
        )
    if not isinstance(thresholds, dict) or not all(map(_are_numbers, thresholds.values())):
        raise OptionError(
            f"{path}: `thresholds` must be numbers in a table per code; got {thresholds!r}. Type "
            "[tool.nethook.thresholds.dead-units] and share = 0.4."
        )
    return Settings(frozenset(ignore), thresholds, path)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, dict) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values.values()
    )
