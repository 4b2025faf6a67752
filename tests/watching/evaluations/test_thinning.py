"""Which of many records are kept."""

from nethook.watching.evaluations.thinning import OFTEN, Thinning


def test_the_first_ones_and_then_ever_fewer():
    thinning = Thinning()
    kept = [number for number in range(1, 200) if thinning.takes()]
    assert kept[:OFTEN] == [1, 2, 3, 4]
    assert len(kept) < 30
    assert all(b >= 1.25 * a for a, b in zip(kept[OFTEN:], kept[OFTEN + 1 :], strict=False))
