"""“Why did the network say so?”: a watermark in digits, found by pixels and by maps.

Pictures of the digit 3 carry a bright pixel in a corner, which a network learns instead of the
shape. Integrated gradients say how much each pixel adds to the score, with the error of their sum;
maps of the Grad-CAM family say where the last layer with places found it. For a twin the same
pixel is on pictures drawn at random: then it means nothing, and nothing is found there.
"""

import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from nethook import interp

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
MARK = (0, 7)  # row and column


def trained(marked: Tensor) -> nn.Module:
    """A small CNN, a few epochs; `marked` pictures have the bright pixel."""
    data = images.clone()
    data[marked, 0, MARK[0], MARK[1]] = 1.5
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(5):
        for batch in torch.randperm(len(data)).split(128):
            loss = nn.functional.cross_entropy(model(data[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def margin(out: Tensor) -> Tensor:
    """How much a 3 is ahead of the other digits, on average: one number per row."""
    return out[:, 3] - (out.sum(1) - out[:, 3]) / 9


threes = images[labels == 3][:8].clone()
threes[:, 0, MARK[0], MARK[1]] = 1.5
torch.manual_seed(1)
networks = {
    "watermark": trained(labels == 3),
    "random mark": trained((labels == 3)[torch.randperm(len(labels))]),
}
with tempfile.TemporaryDirectory() as folder:
    for name, model in networks.items():
        pixels = interp.integrated_gradients(model, threes, target=margin, tol=0.05)
        cam = interp.grad_cam(model, threes, target=margin, at="2", method="hires")
        size = pixels.summed.mean(0).abs()
        share = float(size[MARK] / size.sum())
        corner = float((cam.positive[:, :2, 6:].mean((1, 2)) / cam.positive.mean((1, 2))).mean())
        print(f"{name}: the pixel has {share:.0%} of the attribution, error below 0.05")
        print(f"  the corner has {corner:.1f} times the mean of the map")
        pixels.figure(row=0).write_html(Path(folder) / f"{name}, pixels.html")
        interp.overlay(threes[:2], cam.maps[:2]).write_html(Path(folder) / f"{name}, map.html")
    print(f"written: {len(list(Path(folder).iterdir()))} figures")
