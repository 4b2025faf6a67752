"""Images as parameters."""

import torch

from nethook.interp.viewing.images import fourier, jittered, pixels


def test_coefficients_reach_every_image_and_the_spectrum_falls():
    draw = torch.Generator().manual_seed(0)
    start, make = fourier((2, 8, 9), draw)
    assert make(start).shape == (1, 2, 8, 9)
    jacobian = torch.autograd.functional.jacobian(lambda s: make(s).flatten(), start)
    assert int(torch.linalg.matrix_rank(jacobian.flatten(1))) == 2 * 72
    spectrum = torch.fft.rfft2(make(torch.ones_like(start))[0]).abs()
    assert float(spectrum[0, 0, 1]) > float(spectrum[0, 0, 3])


def test_pixels_are_the_image_and_moves_are_small():
    draw = torch.Generator().manual_seed(0)
    start, make = pixels((3, 4), draw)
    assert torch.equal(make(start)[0], start)
    image = torch.linspace(0, 1, 32)[None, None, None].expand(1, 1, 32, 32).contiguous()
    moved = [jittered(image, draw) for _ in range(3)]
    assert all(each.shape == image.shape for each in moved)
    assert not torch.equal(moved[0], moved[1])
    inner = (moved[0] - image)[..., 4:-4, 4:-4]
    assert float(inner.abs().max()) < 0.15
