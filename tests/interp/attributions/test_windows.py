"""Windows over places, spread and masked."""

import pytest
import torch

from nethook.errors import OptionError
from nethook.interp.attributions.windows import Windows


def test_windows_of_each_kind():
    assert Windows((3, 8, 8), "pixels", 4).all() == [
        (slice(None), slice(y, y + 4), slice(x, x + 4)) for y in (0, 4) for x in (0, 4)
    ]
    assert Windows((5, 7), "tokens").all() == [(slice(n, n + 1), slice(None)) for n in range(5)]
    assert Windows((4,), "features", 3).all() == [(slice(0, 3),), (slice(3, 4),)]
    assert len(Windows((1, 224, 224), "pixels").all()) == 256
    assert len(Windows((1, 8, 8), "pixels").all()) == 64


def test_overlapping_windows_are_averaged():
    windows = Windows((4,), "features", 2, 1)
    effects = torch.tensor([[1.0], [2.0], [4.0]])
    assert windows.spread(effects).tolist() == [[1.0, 1.5, 3.0, 4.0]]
    parts = Windows((1, 4, 4), "pixels", 2).spread(torch.ones(4, 1), divided=True)
    assert parts.shape == (1, 1, 4, 4)
    assert bool((parts == 0.25).all())


@pytest.mark.parametrize(
    ("shape", "kind", "size"),
    [((2, 4, 4), "pixels", 2), ((5, 3), "tokens", 1), ((6,), "features", 2)],
)
def test_a_mask_is_its_windows(shape, kind, size):
    windows = Windows(shape, kind, size)
    value = torch.zeros(2, *shape)
    index = windows.mask([0, 2])
    value[(slice(None), *index)] = 1.0
    expected = torch.zeros(2, *shape)
    for number in (0, 2):
        expected[(slice(None), *windows.all()[number])] = 1.0
    assert torch.equal(value, expected)


@pytest.mark.parametrize(("size", "kind"), [(0, "pixels"), (9, "pixels"), ((1, 2, 3), "pixels")])
def test_wrong_sizes_are_refused(size, kind):
    with pytest.raises(OptionError, match=r"`window` must be a whole number per dimension of plac"):
        Windows((1, 8, 8), kind, size)
