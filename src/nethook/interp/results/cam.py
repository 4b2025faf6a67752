"""`Cam`: maps of a class over pictures, raw and signed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from nethook.drawing.data import Spec
from nethook.errors import ResultError
from nethook.interp.results.files import read_result, write_result
from nethook.text.table import Table

_FORMAT = "nethook_cam"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Cam:
    """What `interp.grad_cam` returns: a map per picture, as small as the layer makes it.

    Attributes:
        maps: (rows, height, width), raw and signed: nothing was cut off or rescaled.
        score: the target for each picture, (rows,).
        method: "grad_cam", "++", "hires", "layer" or "score".
        at: the address of the layer.
        layout: how the layer lays out its values: "channels first", "channels last" or "tokens".
        skipped: tokens before the grid that were left out: class and register tokens.
        images: the pictures, for the figure.
    """

    maps: torch.Tensor
    score: torch.Tensor
    method: str
    at: str
    layout: str
    skipped: int = 0
    images: torch.Tensor | None = None

    def __post_init__(self) -> None:
        if self.maps.ndim != 3 or len(self.maps) != len(self.score):
            raise ResultError(
                f"`maps` must have the shape (rows, height, width) with {len(self.score)} rows; "
                f"got {tuple(self.maps.shape)}."
            )

    @property
    def positive(self) -> torch.Tensor:
        """The maps without what speaks against the target, as the Grad-CAM paper shows them."""
        return self.maps.relu()

    def resized(self, height: int, width: int) -> torch.Tensor:
        """The maps in another size, (rows, height, width): bilinear, not rescaled."""
        return torch.nn.functional.interpolate(
            self.maps[:, None], (height, width), mode="bilinear", align_corners=False
        )[:, 0]

    def figure(
        self, images: torch.Tensor | None = None, *, row: int | None = None, theme: str = "light"
    ) -> Any:
        """A Plotly figure: each picture under its map, with a slider, and the raw map beside it.

        Arguments:
            images: other pictures than those that were studied, (rows, channels, height, width).
            row: one row of the batch; otherwise the first ones.
            theme: "light" or "dark".
        """
        from nethook.drawing.rendering.render import figure

        return figure(self.spec(images, row=row), theme)

    def spec(self, images: torch.Tensor | None = None, *, row: int | None = None) -> Spec:
        """The figure as plain data."""
        from nethook.interp.results.looks import overlaid

        pictures = self.images if images is None else images
        return overlaid(pictures, self.maps, self._title(), row)

    def table(self) -> Table:
        """For each picture: the score, and where its map is largest and smallest."""
        columns = ["row", "score", "largest", "at row, column", "smallest"]
        rows = []
        for number, (one, score) in enumerate(zip(self.maps, self.score, strict=True)):
            place = divmod(int(one.argmax()), one.shape[1])
            rows.append([
                str(number), f"{float(score):.4g}", f"{float(one.max()):.3g}",
                f"{place[0]}, {place[1]}", f"{float(one.min()):.3g}",
            ])  # fmt: skip
        return Table(self._title(), columns, rows, frozenset({"score", "largest", "smallest"}))

    def _title(self) -> str:
        name = {"grad_cam": "Grad-CAM", "++": "Grad-CAM++", "hires": "HiResCAM"}.get(
            self.method, {"layer": "Layer-CAM", "score": "Score-CAM"}.get(self.method, self.method)
        )
        height, width = self.maps.shape[1:]
        skipped = f", {self.skipped} other tokens" if self.skipped else ""
        return f"{name} at {self.at}: {height} × {width} ({self.layout}{skipped})"

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def save(self, path: str | Path) -> None:
        """Writes `path` (JSON) and a safetensors file beside it. `Cam.load` reads them."""
        tensors = {"maps": self.maps, "score": self.score}
        if self.images is not None:
            tensors["images"] = self.images
        plain = {"method": self.method, "at": self.at, "layout": self.layout}
        write_result(Path(path), _FORMAT, {**plain, "skipped": self.skipped}, tensors)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what `save` has written; nothing in the files is run."""
        plain, tensors = read_result(Path(path), _FORMAT)
        kinds: dict[str, Any] = {"method": str, "at": str, "layout": str, "skipped": int}
        try:
            if set(plain) != set(kinds):
                raise ResultError(f"it must have exactly the fields {sorted(kinds)}.")
            for name, kind in kinds.items():
                if type(plain[name]) is not kind:
                    got = f"{plain[name]!r:.40}"
                    raise ResultError(f"{name!r} must be a {kind.__name__}; got {got}.")
            given: dict[str, Any] = {**plain, **tensors}
            return cls(**given)
        except (TypeError, ValueError, ResultError) as error:
            raise ResultError(f"{Path(path).name} is not a cam: {error}") from None
