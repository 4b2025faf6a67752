"""What results share: tables, plain data and files that hold no code."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from nethook.errors import ResultError
from nethook.interp.results.result import Result
from nethook.text.table import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Example(Result):
    _FORMAT: ClassVar[str] = "nethook_example"

    numbers: torch.Tensor
    by_site: dict[str, torch.Tensor]
    names: tuple[str, ...] = ()
    share: float = 0.5
    note: str | None = None

    def table(self):
        rows = [(name, str(len(self.by_site))) for name in self.names]
        return Table(f"{float(self.numbers.sum()):g}", ("name", "sites"), rows)


def test_it_is_saved_and_loaded_bit_for_bit(tmp_path):
    made = Example(
        numbers=torch.arange(3.0), by_site={"h.0/x": torch.ones(2)}, names=("a", "b"), share=0.1
    )
    made.save(tmp_path / "r.json")
    again = Example.load(tmp_path / "r.json")
    assert torch.equal(again.numbers, made.numbers)
    assert torch.equal(again.by_site["h.0/x"], torch.ones(2))
    assert (again.names, again.share, again.note) == (("a", "b"), 0.1, None)
    assert again.to_dict() == {
        "numbers": [0.0, 1.0, 2.0], "by_site": {"h.0/x": [1.0, 1.0]}, "names": ["a", "b"],
        "share": 0.1, "note": None,
    }  # fmt: skip
    assert repr(again).splitlines()[0] == "3"
    assert again._repr_html_().startswith("<div><b>3</b>")


def test_files_of_strangers(tmp_path):
    path = tmp_path / "r.json"
    Example(numbers=torch.ones(1), by_site={"a": torch.ones(1)}).save(path)
    data = json.loads(path.read_text())
    for wrong in (
        {**data, "more": 1}, {**data, "by_site": {"tensors": ["a", "b"]}}, {**data, "by_site": {}},
        {**data, "names": 3}, {**data, "nethook_example": 2},
    ):  # fmt: skip
        path.write_text(json.dumps(wrong))
        with pytest.raises(ResultError):
            Example.load(path)
