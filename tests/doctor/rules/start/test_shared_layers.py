"""The rule `shared-layers`: when it asks, and when it does not."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from tests.doctor.ill import listed
from tests.doctor.small_runs import Net, findings, train


def test_it_is_a_question_with_the_places() -> None:
    (finding,) = listed().found("shared-layers")
    assert finding.severity == "info"
    assert finding.message.startswith("3 places of `heads` (`heads.0` to `heads.2`) are one and")
    assert finding.sites == ("heads.0", "heads.1", "heads.2")
    assert listed("Sequential").found("shared-layers")


class Deep(Net):
    """Layers between the two."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.last = nn.Sequential(*blocks, nn.Linear(6, 3))


def test_real_lists(tmp_path: Path) -> None:
    for name, blocks, places in (
        ("multiplied", [nn.Sequential(nn.Linear(6, 6), nn.Tanh())] * 3, 3),
        ("each", [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(3)], 0),
        ("activation", [nn.Linear(6, 6), act := nn.Tanh(), nn.Linear(6, 6), act], 0),
    ):
        found = findings(tmp_path / name, Deep(blocks), train)
        shared = [finding for finding in found if finding.code == "shared-layers"]
        assert [len(finding.sites) for finding in shared] == ([places] if places else []), name
