"""Write the README again: `python -m tests.zoo`."""

from __future__ import annotations

from tests.zoo.table import README, readme

README.write_text(readme(), encoding="utf-8")
