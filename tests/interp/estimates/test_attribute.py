"""Attribution patching against exact runs, closed forms, and networks whose truth is known."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook import edits
from nethook.errors import EditError, NoSuchSiteError, OptionError
from nethook.interp.estimates.attribute import attribute
from tests.interp import compiled_networks, families

# `A B … A` with B = 2; the source has another A, so that the key behind it does not match.
BASE = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 1]])
OTHER_KEY = torch.tensor([[0, 7, 2, 3, 4, 5, 6, 1]])
OTHER_ANSWER = torch.tensor([[0, 1, 8, 3, 4, 5, 6, 1]])
OP = "blocks.1.attention/scaled_dot_product_attention#0"


def logit(token: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda out: out[:, -1, token]


class Count:
    """Counts the forwards of a model."""

    def __init__(self, model: nn.Module) -> None:
        self.forwards = 0
        self._hook = model.register_forward_pre_hook(self._called)

    def _called(self, *_: Any) -> None:
        self.forwards += 1

    def __enter__(self) -> Count:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()


# -- the compiled networks ----------------------------------------------------------------------


@pytest.mark.parametrize("over", ["heads", ("heads", "positions")])
def test_the_qk_fix_sees_through_a_saturated_softmax(over: Any) -> None:
    model = compiled_networks.induction()
    asked: dict[str, Any] = {"at": "blocks.1", "over": over, "part": "k", "metric": logit(2)}
    plain = attribute(model, BASE, OTHER_KEY, qk_fix=False, **asked)
    fixed = attribute(model, BASE, OTHER_KEY, **asked)
    exact = fixed.verify(top=1, sample=0).exact
    assert float(exact[0]) == pytest.approx(-0.87496, abs=2e-5)
    assert fixed.top(1)[0].mean == pytest.approx(float(exact[0]), abs=1e-5)
    assert plain.top(1)[0].mean == pytest.approx(-0.0005, abs=5e-5)
    cell = "0" if over == "heads" else "0, 2"
    assert fixed.top(1)[0][:2] == (f"{OP} (k)", cell)
    assert int((fixed.effect != 0).sum()) == 1  # all other cells are exactly zero


def test_queries_are_fixed_alike() -> None:
    model = compiled_networks.induction()
    base, source = BASE.clone(), BASE.clone()
    source[0, -1] = 3  # another query: it would look for what came after a 3
    found = attribute(model, base, source, at="blocks.1", over="heads", part="q", metric=logit(2))
    exact = found.verify(top=1, sample=0).exact
    assert float(exact[0]) == pytest.approx(-1, abs=1e-3)
    assert found.top(1)[0].mean == pytest.approx(float(exact[0]), abs=1e-6)


def test_one_head_at_one_position_is_the_whole_effect() -> None:
    found = attribute(
        compiled_networks.induction(), BASE, OTHER_ANSWER, at="blocks.*",
        over=("heads", "positions"), metric=lambda out: out[:, -1, 8] - out[:, -1, 2],
    )  # fmt: skip
    assert found.values.shape == (2, 24, 1)
    assert int((found.effect != 0).sum()) == 1
    assert found.top(1)[0][:2] == (OP, "0, 7")
    assert found.top(1)[0].mean == pytest.approx(2.0, abs=1e-3)
    assert float(found.recovered.max()) == pytest.approx(1.0, abs=1e-6)


def test_cancelling_paths_are_seen_with_a_dropped_layer() -> None:
    model = compiled_networks.Cancellation()
    base, source = torch.tensor([[1.0]]), torch.tensor([[3.0]])
    asked: dict[str, Any] = {"at": "stem", "metric": lambda out: out[:, 0]}
    plain = attribute(model, base, source, **asked)
    assert plain.effect.item() == 0.0
    assert attribute(model, base, source, drop=["square"], **asked).effect.item() == 2.0
    assert attribute(model, base, source, steps=2, **asked).effect.item() == pytest.approx(-2.0)
    assert plain.verify(top=1, sample=0).exact.tolist() == [-2.0]


def test_ablations_of_modular_addition_have_a_closed_form() -> None:
    model = compiled_networks.ModularAddition(13, (1, 3))
    a, b = torch.tensor([2, 5]), torch.tensor([4, 9])
    found = attribute(
        model, (a, b), (a, (b + 1) % 13), at="square", over="units",
        metric=lambda out: out[:, 0],
    )  # fmt: skip
    # What follows is linear, so the estimate is exact: the sum over a frequency's units.
    shifted = model.closed_form(a, (b + 1) % 13, without=(3,)) - model.closed_form(
        a, b, without=(3,)
    )
    torch.testing.assert_close(found.effect[0, :9].sum(0), shifted[:, 0], rtol=0, atol=1e-12)


def test_the_trained_network_is_found_out() -> None:
    model = compiled_networks.trained_induction()
    base = compiled_networks.repeated_texts(8)[:, :-1]
    source = base.clone()
    source[:, 7] = (source[:, 7] + 5) % 24  # the token that the last one is to be completed with
    rows = torch.arange(8)
    # The last token is number 6 of the text, so its answer is number 7.
    metric = lambda out: out[rows, -1, source[:, 7]] - out[rows, -1, base[:, 7]]  # noqa: E731
    found = attribute(
        model, base, source, at="blocks.*", over=("heads", "positions"), metric=metric
    )
    assert found.top(1)[0][:2] == ("blocks.1.attention/scaled_dot_product_attention#0", "0, 14")
    checked = found.verify(top=5, sample=5)
    assert checked.rank_agreement > 0.7
    assert checked.missed < 0.1 * float(checked.exact.abs().max())


# -- relations that hold on every model ----------------------------------------------------------


class LinearStream(nn.Module):
    """Blocks that add a linear map of the stream: attribution patching is exact."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.out = nn.Linear(6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        out: torch.Tensor = self.out(x)
        return out


def total(out: torch.Tensor) -> torch.Tensor:
    return out.sum((1, 2))


def test_on_a_linear_model_the_estimate_is_exact() -> None:
    torch.manual_seed(0)
    model = LinearStream().double()
    base, source = torch.randn(2, 2, 4, 6, dtype=torch.float64)
    found = attribute(model, base, source, at="blocks.*", over="positions", metric=total)
    exact = torch.empty_like(found.values)
    for site, name in enumerate(found.sites):
        with nethook.trace(model, name) as tape:
            model(source)
        for position in range(4):
            index = (slice(None), position)
            patch = edits.patch(tape[name].output, index=index)
            with nethook.edit(model, outputs={name: patch}):
                exact[site, position] = total(model(base)).detach()
    torch.testing.assert_close(found.values, exact, rtol=0, atol=1e-10)
    # The writers of a cut add up to the whole: the input, and what every block wrote.
    begin = attribute(model, base, source, at="blocks.0", metric=total)
    stream = torch.autograd.functional.jacobian(lambda x: total(model(x)).sum(), base)
    assert begin.effect.shape == (1, 1, 2)
    whole = ((source - base) * stream).sum((1, 2))
    torch.testing.assert_close(total(model(source)) - total(model(base)), whole)


def test_with_many_steps_a_whole_cut_gives_the_whole_difference() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    model.double()
    base, source = torch.randn(2, 5, 3, 4, dtype=torch.float64)
    apart = (total(model(source)) - total(model(base))).detach()
    errors = []
    for steps in (1, 4, 12):
        found = attribute(model, base, source, at="0", over="units", metric=total, steps=steps)
        errors.append(float((found.effect.sum((0, 1)) - apart).abs().max()))
    assert errors[0] > 0.05 > errors[1] > errors[2]
    assert errors[2] < 1e-6


@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom", "gemma2", "bert", "encoder"])
def test_a_source_like_the_base_has_no_effect(name: str) -> None:
    model, inputs = families.built(name)
    metric = (lambda out: out[:, -1, 0]) if name == "encoder" else lambda out: out.logits[:, -1, 3]
    found = attribute(model, inputs, inputs, at="**", over="heads", metric=metric)
    assert found.values.shape == (2, 4, 2)
    assert (found.effect == 0).all()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("gpt2", "z"),
        ("llama", "v"),
        ("bloom", "z"),
        ("bloom", "k"),
        ("gemma2", "q"),
        ("bloom", "v"),
    ],
)
def test_gradients_are_those_of_the_exact_effect(name: str, part: Any) -> None:
    """Close to the base, the estimate is the effect. (Both models compute parts in float32.)"""
    model, inputs = families.built(name)
    model = model.double()
    try:
        ids = inputs["input_ids"]
        embedding = model.get_input_embeddings()(ids).detach()
        near = embedding + 1e-3 * torch.randn(
            embedding.shape, generator=torch.Generator().manual_seed(1), dtype=embedding.dtype
        )
        found = attribute(
            model, {"inputs_embeds": embedding}, {"inputs_embeds": near}, at="**", over="heads",
            part=part, metric=lambda out: out.logits[:, -1, 3],
        )  # fmt: skip
        checked = found.verify(top=3, sample=3)
        torch.testing.assert_close(checked.estimated, checked.exact, rtol=2e-2, atol=1e-7)
    finally:
        model.float()


@pytest.mark.parametrize("part", ["q", "k", "v", "z"])
def test_written_out_and_fused_attention_have_the_same_estimates(part: Any) -> None:
    fused, inputs = families.built("gpt2")
    written, _ = families.built("gpt2_eager")
    before = copy.deepcopy(written.state_dict())
    written.load_state_dict(fused.state_dict())
    other = {"input_ids": families.tokens(seed=1)}
    asked: dict[str, Any] = {
        "at": "transformer.h.*", "over": ("heads", "positions"), "part": part,
        "metric": lambda out: out.logits[:, -1, 3],
    }  # fmt: skip
    try:
        one = attribute(fused, inputs, other, **asked)
        with Count(written) as count:
            two = attribute(written, inputs, other, **asked)
        torch.testing.assert_close(two.effect, one.effect, rtol=1e-4, atol=1e-6)
        exact = two.verify(top=2, sample=2), one.verify(top=2, sample=2)
        torch.testing.assert_close(exact[0].exact, exact[1].exact, rtol=1e-4, atol=1e-6)
    finally:
        written.load_state_dict(before)
    assert count.forwards == two.runs <= 4


@pytest.mark.parametrize("over", [None, "positions", "units", "heads", ("heads", "positions")])
def test_at_most_six_forwards_whatever_the_cells(over: Any) -> None:
    model, inputs = families.built("gpt2")
    other = {"input_ids": families.tokens(seed=1)}
    with Count(model) as plain:
        attribute(
            model, inputs, other, at="transformer.h.*", over=over,
            metric=lambda out: out.logits[:, -1, 3],
        )  # fmt: skip
    with Count(model) as most:
        attribute(
            model, inputs, other, at="transformer.h.*", over=over, steps=5,
            metric=lambda out: out.logits[:, -1, 3],
        )  # fmt: skip
    with Count(model) as dropped:
        attribute(
            model, inputs, other, at="transformer.h.*", over=over,
            drop=["transformer.h.0.mlp", "transformer.h.1.mlp"],
            metric=lambda out: out.logits[:, -1, 3],
        )  # fmt: skip
    assert plain.forwards == dropped.forwards == (3 if over and "heads" in over else 2)
    assert most.forwards == plain.forwards + 1


def test_all_parts_can_be_dropped_in_turn() -> None:
    model, inputs = families.built("gpt2")
    other = {"input_ids": families.tokens(seed=1)}
    asked: dict[str, Any] = {
        "at": "transformer.h.*", "over": "heads", "metric": lambda out: out.logits[:, -1, 3],
    }  # fmt: skip
    with Count(model) as count:
        every = attribute(model, inputs, other, drop="parts", **asked)
    assert count.forwards == every.runs == 4
    names = [f"transformer.h.{layer}.{part}" for layer in (0, 1) for part in ("attn", "mlp")]
    assert torch.equal(every.values, attribute(model, inputs, other, drop=names, **asked).values)
    assert (every.effect >= 0).all()
    assert "GradDrop: sizes of effects, without their sign" in repr(every)
    with pytest.raises(OptionError, match='`drop` must be a list of addresses or "parts"'):
        attribute(model, inputs, other, drop="transformer.h.0", **asked)


def test_a_rows_result_does_not_depend_on_its_batch() -> None:
    model, inputs = families.built("gpt2")
    other = {"input_ids": families.tokens(seed=1)}
    metric = lambda out: out.logits[:, -1, 3]  # noqa: E731
    both = attribute(model, inputs, other, at="transformer.h.*", over="positions", metric=metric)
    one = attribute(
        model, {"input_ids": inputs["input_ids"][1:]}, {"input_ids": other["input_ids"][1:]},
        at="transformer.h.*", over="positions", metric=metric,
    )  # fmt: skip
    torch.testing.assert_close(both.effect[..., 1:], one.effect, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("over", ["positions", ("heads", "positions")])
def test_positions_are_those_of_tokens_in_padded_texts(over: Any, left: bool) -> None:
    model, inputs = families.built("gpt2")
    texts = (inputs["input_ids"], families.tokens(seed=1))
    pad = torch.zeros(2, 3, dtype=torch.long)

    def padded(ids: torch.Tensor) -> dict[str, torch.Tensor]:
        both = lambda filler, real: torch.cat([filler, real] if left else [real, filler], 1)  # noqa: E731
        mask = both(pad, torch.ones_like(ids))
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        return {"input_ids": both(pad, ids), "attention_mask": mask, "position_ids": places}

    place = -1 if left else -4
    plain, whole = (
        attribute(
            model, *(make(ids) for ids in texts), at="transformer.h.*", over=over,
            metric=lambda out, place=place: out.logits[:, place, 3],
        )
        for make, place in ((lambda ids: {"input_ids": ids}, -1), (padded, place))
    )  # fmt: skip
    assert whole.cells == plain.cells
    torch.testing.assert_close(whole.effect, plain.effect, rtol=1e-3, atol=1e-7)
    one, two = plain.verify(top=3, sample=0), whole.verify(top=3, sample=0)
    assert one.cells == two.cells
    torch.testing.assert_close(one.exact, two.exact, rtol=1e-3, atol=1e-7)


def test_rows_with_fewer_tokens_have_no_such_cell() -> None:
    model, inputs = families.built("gpt2")
    mask = torch.ones_like(inputs["input_ids"])
    mask[1, 5:] = 0
    base = {**inputs, "attention_mask": mask}
    source = {"input_ids": families.tokens(seed=1), "attention_mask": mask}
    found = attribute(
        model, base, source, at="transformer.h.*", over="positions",
        metric=lambda out: out.logits[:, 4, 3],
    )  # fmt: skip
    assert found.values[0].isnan().tolist() == [[False, False]] * 5 + [[False, True]] * 2
    checked = found.verify(top=14, sample=0)
    # The metric reads token 4, which does not look ahead.
    assert float(checked.exact[checked.cells.index("6")]) == 0.0
    with pytest.raises(OptionError, match="`source` must be padded as `base` is"):
        attribute(
            model, base, {"input_ids": families.tokens(seed=1)}, at="transformer.h.*",
            over="positions", metric=lambda out: out.logits[:, 4, 3],
        )  # fmt: skip


def test_writes_in_place_behind_a_site_do_no_harm() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.relu(self.fc(x).mul_(3)).sum(-1)

    torch.manual_seed(0)
    model = InPlace().double()
    base = torch.randn(2, 3, dtype=torch.float64)
    found = attribute(model, base, base + 1e-6, at="fc", metric=lambda out: out)
    exact = (model(base + 1e-6) - model(base)).detach()
    torch.testing.assert_close(found.effect[0, 0], exact, rtol=1e-6, atol=1e-15)


def test_everything_is_left_as_it_was() -> None:
    model, inputs = families.built("gpt2")
    other = {"input_ids": families.tokens(seed=1)}
    state = torch.get_rng_state()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.train()
    try:
        found = attribute(
            model, inputs, other, at="transformer.h.*", over="heads", part="k",
            metric=lambda out: out.logits[:, -1, 3], drop=["transformer.h.1.mlp"],
        )  # fmt: skip
        found.verify(top=1, sample=1)
        assert model.training
    finally:
        model.eval()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert not nethook.audit(model)


# -- errors --------------------------------------------------------------------------------------


def test_errors_say_what_to_type() -> None:
    model = compiled_networks.induction()
    asked: dict[str, Any] = {"at": "blocks.*", "metric": logit(2)}
    with pytest.raises(OptionError, match=r"`metric` must give one number per row.*got shape \(\)"):
        attribute(model, BASE, OTHER_KEY, at="blocks.*", metric=lambda out: out.sum())
    with pytest.raises(OptionError, match="`source` must have the shapes of `base`"):
        attribute(model, BASE, OTHER_KEY[:, :5], **asked)
    with pytest.raises(OptionError, match='`over` must be None, "positions"'):
        attribute(model, BASE, OTHER_KEY, over="layers", **asked)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match='`part` must be "z", "q", "k" or "v"'):
        attribute(model, BASE, OTHER_KEY, over="heads", part="output", **asked)
    with pytest.raises(OptionError, match="`steps` and `drop` exclude each other"):
        attribute(model, BASE, OTHER_KEY, steps=2, drop=["blocks.0"], **asked)
    with pytest.raises(OptionError, match="`steps` must be a positive number; got 0"):
        attribute(model, BASE, OTHER_KEY, steps=0, **asked)
    with pytest.raises(NoSuchSiteError, match="no attention ran at 'unembed'"):
        attribute(model, BASE, OTHER_KEY, at="unembed", over="heads", metric=logit(2))
    with pytest.raises(OptionError, match="with their number, module/op#k"):
        attribute(model, BASE, OTHER_KEY, at="blocks.*/add", metric=logit(2))


def test_a_site_that_runs_twice_is_refused() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.fc(x)).sum(-1)

    with pytest.raises((OptionError, EditError), match="runs several times in one forward"):
        attribute(Twice(), torch.ones(2, 3), torch.zeros(2, 3), at="fc", metric=lambda out: out)


class Attends(nn.Module):
    """Two attentions one behind the other: torch's own, or the same with the fused operation."""

    def __init__(self, *, fused: bool, batch_first: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attentions = nn.ModuleList(
            nn.MultiheadAttention(8, 2, batch_first=batch_first) for _ in range(2)
        ).double()
        for attention in self.attentions:
            nn.init.normal_(attention.in_proj_bias)
        self.fused, self.batch_first = fused, batch_first

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        for attention in self.attentions:
            x = x + (self.by_hand if self.fused else self.by_torch)(attention, x, hidden)
        return x

    def by_torch(
        self, attention: nn.MultiheadAttention, x: torch.Tensor, hidden: torch.Tensor
    ) -> torch.Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        x = x if self.batch_first else x.transpose(0, 1)
        found = attention(x, x, x, key_padding_mask=hidden, attn_mask=later, need_weights=False)[0]
        return found if self.batch_first else found.transpose(0, 1)

    def by_hand(
        self, attention: nn.MultiheadAttention, x: torch.Tensor, hidden: torch.Tensor
    ) -> torch.Tensor:
        projected = F.linear(x, attention.in_proj_weight, attention.in_proj_bias)
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in projected.chunk(3, -1))
        seen = ~torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        found = F.scaled_dot_product_attention(q, k, v, seen & ~hidden[:, None, None])
        out: torch.Tensor = attention.out_proj(found.transpose(1, 2).flatten(-2))
        return out


@pytest.mark.parametrize("part", ["z", "q", "k", "v"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_parts_of_torchs_own_attention_are_those_of_the_fused_operation(
    part: Any, batch_first: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    base, source = torch.randn(2, 3, 5, 8, generator=generator).double()
    hidden = torch.zeros(3, 5, dtype=torch.bool)
    hidden[0, 3:] = True
    asked: dict[str, Any] = {"at": "", "metric": lambda out: out[:, 2].sum(-1)}
    models = (Attends(fused=False, batch_first=batch_first).eval(), Attends(fused=True).eval())
    for over in ("heads", ("heads", "positions")):
        for more in ({}, {"qk_fix": False}, {"steps": 3, "qk_fix": False}):
            one, two = (
                attribute(
                    m, (base, hidden), (source, hidden), over=over, part=part, **more, **asked
                )
                for m in models
            )
            torch.testing.assert_close(one.values, two.values, rtol=0, atol=1e-10)
        assert (one.effect.abs() > 1e-6).any()
        exact = [each.verify(top=2, sample=2).exact for each in (one, two)]
        torch.testing.assert_close(*exact, rtol=0, atol=1e-10)
