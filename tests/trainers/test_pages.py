"""The example of each page in docs/trainers, run as a reader runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

import nethook
from tests.documents import blocks
from tests.trainers.measuring import is_installed
from zoo.measure import Workers

FOLDER = Path(__file__).parents[2] / "docs" / "trainers"
PACKAGES = {
    "sb3": ["stable_baselines3"],
    "sentence-transformers": ["sentence_transformers", "datasets"],
}
PAGES = [
    page
    for page in sorted(FOLDER.glob("*.md"))
    if all(is_installed(package) for package in PACKAGES.get(page.stem, [page.stem]))
]
LOGGED = {
    "accelerate": {"trainer/loss"},
    "fastai": {"trainer/train_loss", "trainer/valid_loss", "trainer/epoch"},
    "ignite": {"trainer/loss", "trainer/val_loss", "trainer/epoch"},
    "keras": {"trainer/loss", "trainer/val_loss", "trainer/epoch"},
    "lightning": {"trainer/train_loss", "trainer/val_loss", "trainer/epoch"},
    "sb3": {"trainer/train/loss", "trainer/timesteps"},
    "sentence-transformers": {"trainer/loss", "trainer/eval_loss", "trainer/epoch"},
    "skorch": {"trainer/train_loss", "trainer/valid_loss", "trainer/epoch"},
    "trl": {"trainer/loss", "trainer/eval_loss", "trainer/epoch"},
    "transformers": {"trainer/loss", "trainer/eval_loss", "trainer/epoch"},
}


def test_every_page_is_here() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} == LOGGED.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_example_leaves_a_run_with_the_trainers_numbers(
    page: Path, tmp_path: Path, worker: Workers
) -> None:
    [program] = [block for block in blocks(page.read_text(encoding="utf-8")) if block.title]
    (tmp_path / program.title).write_text(program.text, encoding="utf-8")
    code, said = worker.run([str(tmp_path / program.title)], tmp_path / "log", plain=True)
    assert code == 0, said[-3000:]
    with nethook.open_run(tmp_path / "runs" / f"{page.stem}.db") as run:
        assert LOGGED[page.stem] <= set(run.scalars)
        assert run.ranks[0].state == "finished"
        assert run.info["totals"]["steps"] > 10
        assert run.loss().last < run.loss().first or page.stem == "sb3"
