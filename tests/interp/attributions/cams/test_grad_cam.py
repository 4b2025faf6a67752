"""Grad-CAM: captum bit for bit, closed forms, layouts of real models, in-place writes."""

import pytest
import torch
from captum.attr import LayerGradCam
from torch import nn

import nethook
from nethook import interp
from nethook.errors import OptionError
from tests.interp import families

torch.manual_seed(0)
IMAGES = torch.rand(3, 3, 16, 16)


def cnn(inplace: bool = False) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace), nn.Conv2d(8, 6, 3, 2, 1), nn.ReLU(inplace),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4),
    )  # fmt: skip


def test_captum_bit_for_bit():
    model = cnn()
    classes = torch.tensor([0, 3, 1])
    for at in ("0", "2", "3"):
        found = interp.grad_cam(model, IMAGES, target=classes, at=at)
        theirs = LayerGradCam(model, model[int(at)]).attribute(IMAGES, classes)
        assert torch.equal(found.maps, theirs[:, 0].detach())
    assert (found.maps < 0).any()  # signed: nothing was cut off


@pytest.mark.parametrize("method", ["grad_cam", "++", "hires", "layer", "score"])
def test_a_write_in_place_behind_the_layer(method):
    for at in ("0", "2"):
        one = interp.grad_cam(cnn(), IMAGES, target=1, at=at, method=method)
        two = interp.grad_cam(cnn(inplace=True), IMAGES, target=1, at=at, method=method)
        assert torch.equal(one.maps, two.maps)


def test_class_activation_mapping_in_closed_form():
    model = cnn()
    found = interp.grad_cam(model, IMAGES, target=2, at="3")
    values = model[:4](IMAGES).detach()
    cam = torch.einsum("k,rkyx->ryx", model[6].weight[2].detach(), values)
    assert torch.allclose(found.maps, cam / 64, atol=5e-9)
    hires = interp.grad_cam(model, IMAGES, target=2, at="3", method="hires")
    total = hires.maps.sum((1, 2)) + model[6].bias[2]
    assert torch.allclose(total, hires.score, atol=1e-6)


def test_score_cam_by_a_loop():
    model = cnn()
    found = interp.grad_cam(model, IMAGES, target="top", at="3", method="score")
    classes = model(IMAGES).argmax(1)
    values = model[:4](IMAGES).detach()
    large = nn.functional.interpolate(values, (16, 16), mode="bilinear", align_corners=False)
    scores = torch.zeros(3, 6)
    for k in range(6):
        low, high = large[:, k].amin((1, 2)), large[:, k].amax((1, 2))
        mask = (large[:, k] - low[:, None, None]) / (high - low).clamp(min=1e-12)[:, None, None]
        with torch.no_grad():
            scores[:, k] = model(IMAGES * mask[:, None])[torch.arange(3), classes]
    expected = torch.einsum("rk,rkyx->ryx", scores.softmax(1), values)
    assert torch.allclose(found.maps, expected, atol=1e-5)


class Swin(nn.Module):
    """Channels last, as torchvision's Swin."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patches = nn.Conv2d(3, 12, 4, 4)
        self.norm = nn.LayerNorm(12)
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.norm(self.patches(x).permute(0, 2, 3, 1)).mean((1, 2)))


def test_channels_last_and_first_say_the_same():
    model = Swin()
    last = interp.grad_cam(model, IMAGES, target=1, at="norm")
    assert last.layout == "channels last"
    assert last.maps.shape == (3, 4, 4)
    value = model.norm(model.patches(IMAGES).permute(0, 2, 3, 1)).detach()
    weights = model.head.weight[1].detach() / 16
    assert torch.allclose(last.maps, (value * weights).sum(-1), atol=1e-6)


def test_a_vision_transformer():
    model, inputs = families.built("vit")
    at = next(name for name, _ in model.named_modules() if name.endswith("layernorm_before"))
    found = interp.grad_cam(model, inputs, target=0, at=at)
    side = model.config.image_size // model.config.patch_size
    assert found.maps.shape[1:] == (side, side)
    assert found.layout == "tokens"
    assert found.skipped == 1
    with pytest.raises(
        OptionError, match=r"gradient is zero everywhere. The model reads its other"
    ):
        interp.grad_cam(model, inputs, target=0, at=_last_norm(model))


def _last_norm(model: nn.Module) -> str:
    return [name for name, module in model.named_modules() if isinstance(module, nn.LayerNorm)][-1]


def test_a_region_and_a_regression():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    region = torch.zeros(3, 16, 16)
    region[:, :4, :4] = 1.0
    found = interp.grad_cam(
        net, IMAGES, target=lambda out: (out[:, 1] * region).sum((1, 2)), at="1", method="hires"
    )
    assert bool((found.maps[:, 4:, 4:] == 0).all())
    assert bool((found.maps[:, :4, :4] != 0).any())


def test_a_result_keeps_the_pictures_as_they_were():
    images = IMAGES.clone()
    cam = interp.grad_cam(cnn(), images, target=1, at="3")
    saliency = interp.saliency(cnn(), images, target=1)
    images.zero_()
    assert torch.equal(cam.images, IMAGES)
    assert torch.equal(saliency.inputs, IMAGES)


def test_nothing_is_left_behind():
    model = cnn().train()
    interp.grad_cam(model, IMAGES, target=0, at="2", method="score")
    assert model.training
    assert not nethook.audit(model)
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"at": None}, r'`at` must name the layer whose output is read; got None.*at="layer4"'),
        ({"at": "2", "method": "xgrad"}, r"`method` must be one of 'grad_cam', '\+\+', 'hires'"),
        ({"at": "5"}, r"`at` must name a layer with places"),
    ],
)
def test_options_are_checked(options, match):
    with pytest.raises(OptionError, match=match):
        interp.grad_cam(cnn(), IMAGES, target=0, **options)


def test_there_must_be_pictures():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    with pytest.raises(OptionError, match=r"`images` must hold pictures"):
        interp.grad_cam(model, torch.randn(2, 5, 3), target=lambda out: out[:, 0, 0], at="0")
