"""A run as a folder of CSV or Parquet files, one per table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nethook.errors import MissingLibraryError
from nethook.exporting.tables import Columns, tables
from nethook.runs.reading.run import Run
from nethook.text.escape import cell


def to_csv(run: Run, folder: Path) -> list[Path]:
    """One file per table. What a spreadsheet would run as a formula begins with an apostrophe."""
    files = [written_csv(folder / f"{name}.csv", pieces) for name, pieces in tables(run).items()]
    return [file for file in files if file is not None]


def to_parquet(run: Run, folder: Path) -> list[Path]:
    """One file per table."""
    files = [
        written_parquet(folder / f"{name}.parquet", pieces) for name, pieces in tables(run).items()
    ]
    return [file for file in files if file is not None]


def written_csv(path: Path, pieces: Iterator[Columns]) -> Path | None:
    """Write a table; None, and no file, where it is empty."""
    if _write_csv(path, pieces):
        return path
    path.unlink(missing_ok=True)
    return None


def written_parquet(path: Path, pieces: Iterator[Columns]) -> Path | None:
    """Write a table; None, and no file, where it is empty."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingLibraryError(
            "Parquet is written with pyarrow, which is not installed: pip install 'nethook[export]'"
        ) from None
    writer = None
    try:
        for piece in pieces:
            table = pa.table(piece)
            if not len(table):
                continue
            if writer is None:
                writer = pq.ParquetWriter(path, _full(table.schema))
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()
    return None if writer is None else path


def _full(schema: Any) -> Any:
    """The schema with a type for columns that have nothing in them yet, but may later."""
    import pyarrow as pa

    whole = ("rank", "first_step", "last_step")
    for place, field in enumerate(schema):
        if pa.types.is_null(field.type):
            kind = pa.int64() if field.name in whole else pa.string()
            schema = schema.set(place, pa.field(field.name, kind))
    return schema


def _write_csv(path: Path, pieces: Iterator[Columns]) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        for piece in pieces:
            if not rows:
                writer.writerow(piece)
            columns = [_cells(column) for column in piece.values()]
            rows += len(columns[0])
            writer.writerows(zip(*columns, strict=True))
    return rows


def _cells(column: Any) -> list[Any]:
    """A column as Python's own values; texts are made safe, numbers are as they are."""
    entries = column.tolist() if hasattr(column, "tolist") else column
    return [cell(entry) if isinstance(entry, str) else entry for entry in entries]
