"""Images as parameters: pixels, or Fourier coefficients of equal energy; and small random moves."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn import functional as F

Image = Callable[[torch.Tensor], torch.Tensor]


def fourier(shape: tuple[int, ...], draw: torch.Generator) -> tuple[torch.Tensor, Image]:
    """A start of coefficients, and what makes an image of them: (1, channels, height, width).

    Coefficients are divided by their frequency, so that a step moves all scales of an image alike
    (Olah et al. 2017).
    """
    channels, height, width = shape
    rows = torch.fft.fftfreq(height)[:, None]
    columns = torch.fft.rfftfreq(width)[None]
    frequency = (rows.square() + columns.square()).sqrt()
    scale = 1 / frequency.clamp(min=1 / max(height, width)) * math.sqrt(height * width)
    start = 0.01 * torch.randn(channels, *frequency.shape, 2, generator=draw)

    def image(coefficients: torch.Tensor) -> torch.Tensor:
        scaled = torch.view_as_complex(coefficients) * scale.to(coefficients.device)
        made: torch.Tensor = torch.fft.irfft2(scaled, s=(height, width), norm="backward")
        return made[None]

    return start, image


def pixels(shape: tuple[int, ...], draw: torch.Generator) -> tuple[torch.Tensor, Image]:
    """A start of pixels, and the image itself; any shape without the batch."""
    return 0.01 * torch.randn(shape, generator=draw), lambda values: values[None]


def jittered(image: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """The image shifted, scaled and turned a little, at random: (1, channels, height, width)."""

    def drawn(low: float, high: float) -> float:
        return low + (high - low) * float(torch.rand((), generator=draw))

    height, width = image.shape[-2:]
    most = max(1, min(height, width) // 16)
    scale, angle = drawn(0.95, 1.05), math.radians(drawn(-5, 5))
    shift = [drawn(-most, most) * 2 / size for size in (width, height)]
    cosine, sine = math.cos(angle) / scale, math.sin(angle) / scale
    matrix = torch.tensor([[[cosine, -sine, shift[0]], [sine, cosine, shift[1]]]])
    grid = F.affine_grid(matrix.to(image), list(image.shape), align_corners=False)
    return F.grid_sample(image, grid, padding_mode="reflection", align_corners=False)
