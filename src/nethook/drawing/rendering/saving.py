"""A figure as a file: PNG, SVG, PDF, HTML or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from nethook.errors import MissingLibraryError, OptionError

PICTURES: Final = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp")

# plotly.js offers by default to send a figure, with its data, to a service.
CONFIG: Final = {"displaylogo": False, "showSendToCloud": False, "plotlyServerURL": ""}
"""How figures behave in a page of their own."""


def save(
    figure: Any, path: str | Path, *, width: int = 1000, height: int = 0, scale: float = 2.0
) -> Path:
    """Write a figure; the ending of the path says as what.

        nethook.figures.save(nethook.figures.overview(run), "loss.svg")

    Arguments:
        figure: what a function of `nethook.figures` returned.
        path: ends with .png, .svg, .pdf, .jpg, .webp (pictures, which need kaleido and a Chrome or
            Chromium on this machine), .html (one file, works without network) or .json.
        width, height: of a picture, in pixels; height 0 is the figure's own.
        scale: pixels of a .png for each of these.

    Returns:
        The path.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind == ".html":
        figure.write_html(target, include_plotlyjs=True, config=CONFIG)
    elif kind == ".json":
        target.write_text(figure.to_json(), encoding="utf-8")
    elif kind in PICTURES:
        _picture(figure, target, width, height or None, scale)
    else:
        endings = ", ".join((*PICTURES, ".html", ".json"))
        raise OptionError(
            f"`path` must end with one of {endings}; got {target.name!r}. The ending says as what "
            "the figure is saved."
        )
    return target


def _picture(figure: Any, path: Path, width: int, height: int | None, scale: float) -> None:
    try:
        import kaleido
    except ImportError:
        raise MissingLibraryError(
            f"a {path.suffix} of a figure needs kaleido, which is not installed: "
            "pip install 'nethook[export]'. A .html needs nothing."
        ) from None
    del kaleido  # plotly calls it
    try:
        figure.write_image(path, width=width, height=height, scale=scale)
    except Exception as error:
        # Kaleido draws with a browser, and tells in several ways that there is none.
        if "chrome" not in f"{type(error).__name__} {error}".lower():
            raise
        raise MissingLibraryError(
            f"a {path.suffix} of a figure is drawn by Chrome or Chromium, and kaleido found none: "
            "install one (`kaleido_get_chrome`, or your system's chromium). A .html needs nothing."
        ) from error
