"""How the tests read a page of the documentation."""

from __future__ import annotations

from tests.documents import agree, blocks, commands, without_blocks

PAGE = """\
# Title

<!-- python
x = 1
-->

```python title="train.py"
print("# no heading")
```

```console
$ nethook run train.py
Net, 3 layers, watching cost 2.1 % per step and 0.4 s in
  all
examined in 1 s: 4 experiments on copies
loss 2.3 → 0.1
$ python train.py
```
"""


def test_blocks_have_a_language_a_title_and_a_text() -> None:
    found = [(block.language, block.title, block.text) for block in blocks(PAGE)]
    assert found[:2] == [
        ("python", "", "x = 1\n"),
        ("python", "train.py", 'print("# no heading")\n'),
    ]
    assert found[2][0] == "console"
    assert all(PAGE[block.start : block.end] == block.text for block in blocks(PAGE))
    assert without_blocks(PAGE).split() == ["#", "Title"]


def test_commands_are_told_from_what_they_print() -> None:
    (line, shown), last = commands(blocks(PAGE)[2].text)
    assert line == "nethook run train.py"
    assert shown.splitlines()[-1] == "loss 2.3 → 0.1"
    assert last == ("python train.py", "")


def test_numbers_times_and_breaks_of_lines_do_not_count() -> None:
    (_, shown), _ = commands(blocks(PAGE)[2].text)
    assert agree(shown, "Net, 3 layers, watching cost less than 0.1 %\nloss 1.94\n  → 3e-5\n")
    assert not agree(shown, "Net, 3 layers\nloss 2.3 → nan\n")
    assert not agree(shown, "Net, 3 layers\n")


def test_an_ellipsis_stands_for_any_lines() -> None:
    assert agree("a 1\n…\nz\n", "a 2\nb\nc\nz\n")
    assert not agree("a\n…\nz\n", "b\nz\n")
    assert not agree("a … z\n", "a b z\n")
