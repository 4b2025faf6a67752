"""Image embeddings are taken with a hook that clones and detaches them: the caption side trains, the image encoder does not.

expect: no-gradient
line: self.latents = output.clone().detach()
source: https://github.com/lucidrains/CoCa-pytorch/issues/6
metric: accuracy of finding the caption of an image among 50, higher is better
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Extractor(nn.Module):
    """Gives what a layer of a vision network puts out."""

    def __init__(self, vit, layer):
        super().__init__()
        self.vit = vit
        self.latents = None
        layer.register_forward_hook(self._hook)

    def _hook(self, _, inputs, output):
        self.latents = output.clone().detach()

    def forward(self, img):
        self.vit(img)
        return self.latents


class TinyViT(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.patches = nn.Linear(24, dim)
        self.transform = nn.Sequential(nn.GELU(), nn.Linear(dim, 6), nn.GELU(), nn.Linear(6, 6))

    def forward(self, img):
        return self.transform(self.patches(img))


class CoCa(nn.Module):
    def __init__(self, img_encoder, dim=16):
        super().__init__()
        self.img_encoder = img_encoder
        self.img_to_latents = nn.Linear(6, dim)
        self.text = nn.EmbeddingBag(40, 24)
        self.text_to_latents = nn.Linear(24, dim)
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, text, images):
        img = F.normalize(self.img_to_latents(self.img_encoder(images)), dim=-1)
        txt = F.normalize(self.text_to_latents(self.text(text)), dim=-1)
        return txt @ img.t() * self.temperature.exp()


def pairs(n, world):
    """A caption of four words, and an image that shows them."""
    text = torch.stack([torch.randint(10 * k, 10 * (k + 1), (n,)) for k in range(4)], 1)
    images = torch.sin(2 * world[text].sum(1)) + 0.1 * torch.randn(n, 24)
    return text, images


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
world = torch.randn(40, 24) * 0.3

vit = TinyViT()
coca = CoCa(Extractor(vit, vit.transform))
opt = torch.optim.Adam(coca.parameters(), lr=5e-3)
labels = torch.arange(50)
for step in range(350):
    text, images = pairs(50, world)
    sim = coca(text, images)
    loss = (F.cross_entropy(sim, labels) + F.cross_entropy(sim.t(), labels)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 70 == 0:
        print("step", step, "contrastive loss", loss.item())

coca.eval()
with torch.no_grad():
    found = [(coca(*pairs(50, world)).argmax(0) == labels).float().mean() for _ in range(10)]
print("metric: %.4f" % torch.stack(found).mean().item())
