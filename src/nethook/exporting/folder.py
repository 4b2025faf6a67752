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
    written = []
    for name, pieces in tables(run).items():
        path = folder / f"{name}.csv"
        rows = _write_csv(path, pieces)
        if rows:
            written.append(path)
        else:
            path.unlink(missing_ok=True)
    return written


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


def to_parquet(run: Run, folder: Path) -> list[Path]:
    """One file per table."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingLibraryError(
            "Parquet is written with pyarrow, which is not installed: pip install 'nethook[export]'"
        ) from None
    written = []
    for name, pieces in tables(run).items():
        path = folder / f"{name}.parquet"
        writer = None
        try:
            for piece in pieces:
                table = pa.table(piece)
                if not len(table):
                    continue
                writer = writer or pq.ParquetWriter(path, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
                written.append(path)
    return written
