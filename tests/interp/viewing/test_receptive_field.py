"""Receptive fields against arithmetic: strides, dilation, skips, known networks."""

import functools

import pytest
import torch
from torch import nn

import nethook
from nethook import interp
from nethook.errors import OptionError
from nethook.interp.viewing.receptive_field import ReceptiveField


def arithmetic(layers):
    """r += (k - 1) * product of strides, for layers (kernel, stride)."""
    size, jump = 1, 1
    for kernel, stride in layers:
        size += (kernel - 1) * jump
        jump *= stride
    return size


def conv(kernel, stride=1, dilation=1, channels=1):
    same = dilation * (kernel - 1) // 2
    return nn.Conv1d(channels, channels, kernel, stride, same, dilation)


def vgg16():
    layers = []
    for count in (2, 2, 3, 3, 3):
        layers += [part for _ in range(count) for part in (conv(3), nn.ReLU())]
        layers.append(nn.MaxPool1d(2))
    return nn.Sequential(*layers)


class Bottleneck(nn.Module):
    def __init__(self, stride):
        super().__init__()
        self.body = nn.Sequential(conv(1), nn.ReLU(), conv(3, stride), nn.ReLU(), conv(1))
        self.short = conv(1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet50(*, last):
    """With a stride in the first block of a stage, as torchvision has it, or in the last before."""
    counts = (3, 4, 6, 3)
    strided = [
        number == count - 1 and stage < 3 if last else stage > 0 and not number
        for stage, count in enumerate(counts)
        for number in range(count)
    ]
    blocks = [Bottleneck(2 if each else 1) for each in strided]
    return nn.Sequential(conv(7, 2), nn.ReLU(), nn.MaxPool1d(3, 2, 1), *blocks)


@pytest.mark.parametrize(
    ("make", "length", "size"),
    [
        (vgg16, 320, 212),
        (functools.partial(resnet50, last=False), 640, 427),
        (functools.partial(resnet50, last=True), 640, 483),
    ],
)
def test_known_networks_along_one_axis(make, length, size):
    torch.manual_seed(0)
    field = interp.receptive_field(make(), torch.randn(1, 1, length), at="")
    assert field.size == (size,)
    assert not field.clipped


def test_strides_pooling_and_dilation_in_two_dimensions():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(2),
        nn.Conv2d(2, 2, 3, padding=2, dilation=2),
    ).train()  # fmt: skip
    x = torch.randn(2, 1, 48, 40)
    state = [p.clone() for p in (*model.parameters(), *model.buffers())]
    field = interp.receptive_field(model, x, at="4")
    expected = arithmetic([(3, 2), (2, 2), (5, 1)])  # a dilated kernel of 3 extends over 5
    assert field.size == (expected, expected)
    assert model.training
    assert not nethook.audit(model)
    assert all(map(torch.equal, state, (*model.parameters(), *model.buffers())))
    assert interp.receptive_field(model, x, at="0").size == (3, 3)
    gaps = interp.receptive_field(nn.Conv2d(1, 1, 3, padding=4, dilation=4), x, at="")
    assert gaps.size == (9, 9)
    assert int(gaps.reads["height"].sum()) == 3  # with holes
    assert gaps.table().rows[0][2] == "3"


def test_a_skip_is_the_union_and_zero_weights_still_read():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.near, self.far = nn.Conv1d(1, 1, 1), nn.Conv1d(1, 1, 3, padding=6, dilation=6)
            nn.init.zeros_(self.far.weight)

        def forward(self, x):
            return self.near(x) + self.far(x)

    field = interp.receptive_field(Skip(), torch.randn(1, 1, 31), at="")
    assert field.reads["time"].nonzero().flatten().tolist() == [9, 15, 21]
    whole = interp.receptive_field(
        nn.Sequential(nn.Flatten(), nn.Linear(8, 3)), torch.randn(1, 1, 8), at="0"
    )
    assert whole.size == (8,)
    assert whole.clipped


def test_the_effective_field_is_the_gradient():
    model = nn.Conv2d(1, 1, 3, padding=1, bias=False).double()
    field = interp.receptive_field(model, torch.randn(3, 1, 9, 9).double(), at="", position=(4, 5))
    expected = torch.zeros(9, 9).double()
    expected[3:6, 4:7] = model.weight.detach()[0, 0].abs()
    torch.testing.assert_close(field.effective, expected)
    assert field.box == ((3, 6), (4, 7))
    assert field.effective_size(1.0) == (3, 3)


def test_what_compares_is_found_too():
    class Where(nn.Module):
        def forward(self, x):
            return torch.where(x > 0, x, torch.zeros_like(x))  # a NaN does not pass

    field = interp.receptive_field(Where(), torch.full((1, 1, 5), 2.0), at="")
    assert field.size == (1,)


def test_refusals_files_and_looks(tmp_path):
    model = nn.Conv2d(1, 1, 3)
    x = torch.randn(1, 1, 7, 7)
    for wrong in (torch.ones(2, 3), torch.ones(1, 1, 4, dtype=torch.long), [1]):
        with pytest.raises(OptionError, match="`x` must be a tensor of floats"):
            interp.receptive_field(model, wrong, at="")
    with pytest.raises(OptionError, match=r"a place in the site's space, \(5, 5\); got \(5, 0\)"):
        interp.receptive_field(model, x, at="", position=(5, 0))
    field = interp.receptive_field(model, x, at="")
    with pytest.raises(OptionError, match="`share` must lie between 0 and 1"):
        field.effective_size(2)
    field.save(tmp_path / "f.json")
    again = ReceptiveField.load(tmp_path / "f.json")
    assert repr(again) == repr(field)
    assert again.size == (3, 3)
    assert len(field.figure().data) == 2
    line = interp.receptive_field(nn.Conv1d(1, 1, 3), torch.randn(1, 1, 9), at="")
    assert line.figure().data[0].z.shape == (1, 9)
