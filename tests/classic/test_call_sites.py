"""The ways in which existing programs call these names; the shapes of the calls, not the code."""

import pytest
import torch
from torch import nn

import nethook
from nethook.classic import rome


class Attention(nn.Module):
    def forward(self, hidden, cache=None):
        return hidden.cumsum(1) / 10, cache


class MLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.c_fc = nn.Linear(d, 2 * d)
        self.c_proj = nn.Linear(2 * d, d)

    def forward(self, x):
        return self.c_proj(torch.relu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attn = Attention()
        self.mlp = MLP(d)

    def forward(self, hidden, *, cache=None):
        hidden = hidden + self.attn(hidden, cache=cache)[0]
        return hidden + self.mlp(hidden), cache


class Transformer(nn.Module):
    """A language model in the shape of GPT-2: blocks return tuples, inputs go by name."""

    def __init__(self, vocabulary=11, d=6, depth=3):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, d)
        self.h = nn.ModuleList(Block(d) for _ in range(depth))
        self.ln_f = nn.LayerNorm(d)

    def forward(self, input_ids, attention_mask=None):
        hidden = self.wte(input_ids)
        for block in self.h:
            hidden, _ = block(hidden, cache=None)
        return self.ln_f(hidden)


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = Transformer()
        self.lm_head = nn.Linear(6, 11, bias=False)

    def forward(self, input_ids, attention_mask=None):
        return self.lm_head(self.transformer(input_ids=input_ids, attention_mask=attention_mask))


@pytest.fixture
def lm():
    torch.manual_seed(0)
    return LM().eval()


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return {"input_ids": torch.randint(0, 11, (4, 5)), "attention_mask": torch.ones(4, 5)}


both = pytest.mark.parametrize("hooks", [rome, nethook], ids=["rome", "nethook"])


def untuple(x):
    return x[0] if isinstance(x, tuple) else x


@both
def test_optimising_a_vector_that_is_added_to_a_hidden_state(hooks, lm, batch):
    """compute_v: in-place addition of a trained vector, a loss on another layer's output."""
    delta = torch.zeros(6, requires_grad=True)
    hooks.set_requires_grad(False, lm)
    target = []

    def edit_output_fn(cur_out, cur_layer):
        if cur_layer == "transformer.h.0.mlp":
            if not target:
                target.append(cur_out[0, 2].detach().clone())
            for i in range(len(cur_out)):
                cur_out[i, 2, :] += delta
        return cur_out

    optimizer = torch.optim.Adam([delta], lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        with hooks.TraceDict(
            module=lm,
            layers=["transformer.h.2", "transformer.h.0.mlp"],
            retain_input=False,
            retain_output=True,
            edit_output=edit_output_fn,
        ) as tr:
            logits = lm(**batch)
        hidden = untuple(tr["transformer.h.2"].output)
        logged = torch.log_softmax(lm.lm_head(lm.transformer.ln_f(hidden)), -1)
        assert torch.allclose(logged, torch.log_softmax(logits, -1))
        loss = -logged[:, -1, 3].mean() + 0.01 * delta.norm() ** 2
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert list(nethook.audit(lm)) == []


@both
def test_reading_representations_at_words(hooks, lm, batch):
    """repr_tools: input and output of one layer, named by a template, arguments by keyword."""
    template = "transformer.h.{}.mlp.c_proj"
    with (
        torch.no_grad(),
        hooks.Trace(
            module=lm, layer=template.format(1), retain_input=True, retain_output=True
        ) as tr,
    ):
        lm(**batch)
    assert torch.equal(lm.transformer.h[1].mlp.c_proj(tr.input), tr.output)
    assert tr.input[:, -1].shape == (4, 12)


@both
def test_statistics_of_a_layers_input_stop_the_forward(hooks, lm, batch):
    """layer_stats: only the input is wanted, and the rest of the network is not run."""
    ran = []
    lm.lm_head.register_forward_hook(lambda *_: ran.append(1))
    moment = torch.zeros(12, 12)
    for _ in range(2):
        with (
            torch.no_grad(),
            hooks.Trace(
                lm, "transformer.h.1.mlp.c_proj", retain_input=True, retain_output=False, stop=True
            ) as tr,
        ):
            lm(**batch)
        rows = tr.input[batch["attention_mask"].bool()]
        moment += rows.T @ rows
    assert ran == []
    assert moment.diagonal().sum() > 0


@both
def test_causal_tracing(hooks, lm, batch):
    """causal_trace: noise at the embedding, states of the clean run put back, in place."""
    ids = batch["input_ids"][:1].repeat(4, 1)
    noise = torch.randn(3, 2, 6, generator=torch.Generator().manual_seed(2))
    states = {"transformer.h.1": [2]}

    def patch_rep(x, layer):
        if layer == "transformer.wte":
            x[1:, 0:2] += noise
            return x
        if layer not in states:
            return x
        h = untuple(x)
        for token in states[layer]:
            h[1:, token] = h[0, token]
        return x

    extra = ["transformer.h.0", "transformer.h.2"]
    with (
        torch.no_grad(),
        hooks.TraceDict(lm, ["transformer.wte", *states, *extra], edit_output=patch_rep) as td,
    ):
        logits = lm(input_ids=ids)
    all_traced = torch.stack([untuple(td[layer].output).detach() for layer in extra], dim=2)
    assert all_traced.shape == (4, 5, 2, 6)
    restored = untuple(td["transformer.h.1"].output)
    assert torch.equal(restored[1:, 2], restored[:1, 2].expand(3, -1))
    assert not torch.equal(restored[1, 0], restored[0, 0])
    with torch.no_grad():
        assert torch.equal(logits[0], lm(input_ids=ids)[0])


def test_a_logit_lens(lm, batch):
    """logit_lens: a TraceDict kept as an attribute, opened and closed by hand."""
    layers = [f"transformer.h.{i}" for i in range(3)]
    norm, head = nethook.get_module(lm, "transformer.ln_f"), nethook.get_module(lm, "lm_head")
    td = nethook.TraceDict(lm, layers, retain_input=False, retain_output=True)
    td.__enter__()
    with torch.no_grad():
        logits = lm(**batch)
    td.__exit__(None, None, None)
    read = [torch.softmax(head(norm(untuple(td[layer].output)[:, -1])), -1) for layer in layers]
    assert torch.allclose(read[-1], torch.softmax(logits[:, -1], -1))


def test_a_weight_is_edited_by_hand_and_put_back(lm, batch):
    """rome_main: copies kept by hand, a rank-one matrix added to the very parameter."""
    name = "transformer.h.1.mlp.c_proj.weight"
    before = lm(**batch)
    kept = {name: nethook.get_parameter(lm, name).detach().clone()}
    u, v = torch.ones(6), torch.ones(12)
    with torch.no_grad():
        weight = nethook.get_parameter(lm, name)
        update = u.unsqueeze(1) @ v.unsqueeze(0)
        weight[...] += update if update.shape == weight.shape else update.T
    assert not torch.equal(lm(**batch), before)
    with torch.no_grad():
        for each, value in kept.items():
            nethook.get_parameter(lm, each)[...] = value
    assert torch.equal(lm(**batch), before)


@pytest.fixture
def generator():
    torch.manual_seed(0)
    return nn.Sequential(
        *[nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(inplace=True)) for _ in range(3)]
    ).eval()


def test_rewriting_a_generator(generator):
    """ganrewrite: the model cut at a layer, one half frozen, a weight trained in the middle."""
    model = generator
    z = torch.randn(2, 4, 6, 6)
    context = nethook.subsequence(model, upto_layer="1.0", share_weights=True)
    target = nethook.subsequence(model, single_layer="1.0", share_weights=False)
    rendering = nethook.subsequence(model, after_layer="1.0", share_weights=True)
    nethook.set_requires_grad(False, model)
    with torch.no_grad():
        key = context(z)
        assert torch.allclose(rendering(target(key)), model(z))
    weight = nethook.get_parameter(target, "1.0.weight")
    nethook.set_requires_grad(True, weight)
    goal = torch.zeros(2, 4, 6, 6)
    losses = []
    for _ in range(3):
        loss = (rendering(target(key)) - goal).square().mean()
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= 0.5 * grad
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(not each.requires_grad for each in model.parameters())


def test_dissection_of_one_layer(generator):
    """quickdissect: a wrapper, one retained layer, features read after each batch."""
    with nethook.InstrumentedModel(generator) as model:
        model.retain_layer("1")
        maxima = []
        for _ in range(2):
            with torch.no_grad():
                model(torch.randn(2, 4, 6, 6))
            acts = model.retained_layer("1")
            maxima.append(acts.flatten(2).amax(2))
    assert torch.cat(maxima).shape == (4, 4)


def test_optimising_an_ablation(generator):
    """aceoptimize: a mask over units is trained through edit_layer."""
    model = nethook.InstrumentedModel(generator)
    model.retain_layer("1")
    nethook.set_requires_grad(False, model)
    z = torch.randn(2, 4, 6, 6)
    model(z)
    replacement = model.retained_layer("1").mean((0, 2, 3), keepdim=True)
    ablation = torch.full((1, 4, 1, 1), 0.5, requires_grad=True)
    before = ablation.detach().clone()
    optimizer = torch.optim.SGD([ablation], lr=1.0)
    for _ in range(2):
        optimizer.zero_grad()
        model.edit_layer("1", ablation=ablation, replacement=replacement)
        model(z).square().mean().backward()
        optimizer.step()
    model.remove_edits("1")
    assert not torch.equal(ablation.detach(), before)
    model.close()


def test_a_server_edits_and_resets_at_each_request(generator):
    """serverstate: several layers retained for good, edits set and removed at each request."""
    model = nethook.InstrumentedModel(generator)
    model.retain_layers(["0", "1"])
    z = torch.randn(1, 4, 6, 6)
    plain = model(z)
    for request in ({"1": {"ablation": [1, 0, 0, 1]}}, {"0": {"ablation": 1.0, "value": 0.5}}):
        model.remove_edits()
        for layer, edit in request.items():
            model.edit_layer(layer, ablation=edit["ablation"], replacement=edit.get("value"))
        with torch.no_grad():
            assert not torch.equal(model(z), plain)
        assert set(model.retained_features()) == {"0", "1"}
    model.remove_edits()
    assert torch.equal(model(z), plain)


def test_a_configured_model_carries_its_facts(generator):
    """modelconfig: layers given as pairs, shapes of features found by one run, kept on it."""
    model = nethook.InstrumentedModel(generator)
    model.retain_layers([("0", "early"), ("2", "late")])
    model.eval()
    model(torch.zeros(1, 4, 6, 6))
    model.feature_shape = {k: tuple(v.shape) for k, v in model.retained_features().items()}
    model.input_shape = (1, 4, 6, 6)
    assert model.feature_shape == {"early": (1, 4, 6, 6), "late": (1, 4, 6, 6)}
    model.close()
    assert list(nethook.audit(generator)) == []


def test_code_written_for_the_copied_file_runs_with_import_nethook():
    names = """Trace TraceDict StopForward recursive_copy subsequence hierarchical_subsequence
    set_requires_grad get_module get_parameter module_names parameter_names replace_module
    invoke_with_optional_args InstrumentedModel make_matching_tensor apply_ablation_replacement
    retain_layer_output retain_layers edit_layer_output edit_layers get_and_match_shape
    clear_edit"""
    for name in names.split():
        assert getattr(nethook, name) is getattr(nethook.classic, name)
