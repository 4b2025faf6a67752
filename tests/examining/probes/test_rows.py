"""Whether the rows of a batch are samples."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from nethook.examining.probes.rows import sample_axes, shown_by, why_not_samples
from tests.examining.experiments.healthy import HEALTHY, TimeFirst, classes, mlp
from tests.examining.experiments.steps import step


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("listwise_ranker_of_changing_size", "differ in size"),
        ("listwise_ranker_of_fixed_size_with_attention", "no dimension of the inputs"),
        ("full_batch_attention_over_rows", "the same batch"),
        ("contrastive_pairs", "numbers of the rows"),
        ("minibatch_discrimination", "all targets are the same"),
        ("critic_without_targets", "no target is known"),
        ("graph_network_with_adjacency", "is 24 by 24"),
        ("graph_network_with_edges", "a list of pairs"),
        ("graph_network_that_holds_its_links", "holds connections"),
        ("bag_of_instances", "no dimension of the inputs"),
        ("clips_of_frames", "no dimension of the inputs"),
    ],
)
def test_what_speaks_against_samples(name: str, words: str) -> None:
    assert words in why_not_samples(HEALTHY[name]().rehearsal())


def test_a_sparse_input_connects_rows() -> None:
    y = classes(8)
    made = step(
        mlp(6, 3), torch.eye(8, 6).to_sparse(), then=lambda out: F.cross_entropy(out, y)
    ).rehearsal()
    made.history = type(made.history)(size=8)
    assert "sparse" in why_not_samples(made) or "no dimension" in why_not_samples(made)


def test_a_loader_shows_that_rows_are_samples() -> None:
    rehearsal = HEALTHY["classifier"]().rehearsal()
    (axis,) = sample_axes(rehearsal)
    assert "puts 16 samples into a batch" in shown_by(rehearsal, axis)
    assert why_not_samples(rehearsal) == ""


def test_the_size_of_the_loader_says_which_dimension_it_is() -> None:
    tags = torch.randint(4, (12, 8))

    def made(loader: int | None) -> list[int]:
        one = step(
            TimeFirst(), torch.randn(12, 8, 6), loader=loader,
            then=lambda out: F.cross_entropy(out.flatten(0, 1), tags.flatten()),
        )  # fmt: skip
        return [axis.size for axis in sample_axes(one.rehearsal())]

    assert made(None) == [12, 8]
    assert made(8) == [8, 12]
