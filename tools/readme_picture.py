"""Makes the picture of the README: the report of its training script, in Chromium, light and dark.

    python -m tools.readme_picture

Runs the script that the README shows under `nethook run`, writes its report, and takes the upper
part of that.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.documents import blocks

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 1200, 830


def report(folder: Path) -> Path:
    """The report of the README's script, run in this folder."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    script = next(block for block in blocks(page) if block.title)
    (folder / script.title).write_text(script.text, encoding="utf-8")
    for words in (["run", "--to", "train.db", script.title], ["report", "train.db"]):
        subprocess.run([sys.executable, "-m", "nethook", *words], cwd=folder, check=True)
    return folder / "train.html"


def main() -> None:
    """Writes docs/pictures/report-light.png and report-dark.png."""
    chromium = subprocess.run(
        [ROOT / "tools" / "chromium"], stdout=subprocess.PIPE, text=True, check=True
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        url = report(Path(folder)).as_uri()
        browser = playwright.chromium.launch(
            executable_path=chromium.stdout.strip(), args=["--no-sandbox"]
        )
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme=scheme,
                device_scale_factor=1.5,
            )
            page.goto(url)
            page.wait_for_timeout(2000)  # figures are drawn when they come into view
            page.screenshot(path=PICTURES / f"report-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
