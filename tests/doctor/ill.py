"""For every code a run made of numbers that has the fault, and runs beside it that have not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.doctor import ill_losses
from tests.doctor.synthetic import Made, falling, flat

CLASSES: dict[str, Any] = {"kind": "cross_entropy", "class_counts": [16] * 10, "floored": True}
Run = Callable[[], Made]


def stuck(steps: int = 200) -> Made:
    """A run whose loss stays at the entropy of its ten classes."""
    return Made(steps).loss(flat(steps, 2.31)).record(**CLASSES)


def well(steps: int = 200) -> Made:
    """A run that learns."""
    return Made(steps).loss(falling(steps)).record(**CLASSES)


def bad(values: np.ndarray[Any, Any]) -> Made:
    """A run with another loss."""
    return Made(len(values)).loss(values).record(**CLASSES)


def layers(made: Made, **gradients: float) -> Made:
    """Linear layers with gradients of these sizes."""
    for name, size in gradients.items():
        made.module(name, activation="linear", parameters=[f"{name}.weight"])
        made.series(name, "grads", rms=size).series(name, "outputs", rms=1.0)
    return made


def scales(made: Made, *sizes: float) -> Made:
    """Linear layers with outputs of these sizes."""
    made.series("", "inputs", rms=1.0, std=1.0, mean=0.0, info={"dtype": "float32"})
    for at, size in enumerate(sizes):
        made.module(f"fc{at}", activation="linear", parameters=[f"fc{at}.weight"])
        made.series(f"fc{at}", "outputs", rms=size)
    return made


def inputs(made: Made, mean: float, std: float, dtype: str = "float32") -> Made:
    """What enters the network."""
    made.module("fc", activation="linear", parameters=["fc.weight"])
    rms = float(np.hypot(mean, std))
    return made.series("", "inputs", mean=mean, std=std, rms=rms, info={"dtype": dtype})


def chain(*ops: tuple[str, str, bool]) -> Made:
    """Operations in a row, and layers of sixteen units."""
    made = stuck()
    made.info["ops"] = [
        {"site": site, "op": op, "linear": linear, "from": [at - 1] if at else []}
        for at, (site, op, linear) in enumerate(ops)
    ]
    for site in dict.fromkeys(site for site, op, _ in ops if op == "linear"):
        made.module(site).parameter(f"{site}.weight")
    return made


def cut(**facts: Any) -> Made:
    """Two layers, the first of which has these facts."""
    made = stuck().module("a", parameters=["a.weight"]).module("b", parameters=["b.weight"])
    return made.parameter("a.weight", **facts).parameter("b.weight")


def graph(made: Made, **facts: Any) -> Made:
    """A run whose graphs have shown this."""
    optimizer = {"type": "Adam", "line": "train.py:5", "steps": 200, "parameters": 4, "orphans": 0}
    known = {"looks": 11, "without": 0, "leaf_roots": {}, "tensors": 0, "second_order": False,
             "unheld": [], "others": [], "optimizers": [optimizer], "attributes": []}  # fmt: skip
    made.info["graph"] = {**known, **facts}
    return made


def loose(**facts: Any) -> dict[str, Any]:
    """Leaves that no optimizer has, in a list of a module."""
    usual = {"how": "list", "where": "blocks", "kind": "Linear", "line": "net.py:7",
             "training": True, "parameters": 4, "elements": 512, "looks": 11, "since": 0,
             "last": 150, "moved": False, "filled": False}  # fmt: skip
    return {**usual, **facts}


def orphaned(orphans: int = 2, steps: int = 200) -> list[dict[str, Any]]:
    """An optimizer that holds tensors which are in no graph and no network."""
    return [{"type": "SGD", "line": "train.py:9", "steps": steps, "parameters": 6,
             "orphans": orphans}]  # fmt: skip


def remade(count: int, kind: str = "Adam", **group: Any) -> Made:
    """A parameter that was in so many optimizers, one after the other."""
    run = well().parameter("a.weight", groups=[[str(at), 0] for at in range(count)])
    for at in range(count):
        data = {"optimizer": str(at), "type": kind, "line": "train.py:7", "groups": [group]}
        run.event("groups", at, **data)
    return run


def misspelt(**facts: Any) -> Made:
    """A run in which somebody has written `require_grad`."""
    usual = {"of": "parameter", "name": "require_grad", "meant": "requires_grad", "value": False,
             "count": 2, "sites": ["a.weight", "a.bias"], "line": "train.py:8",
             "since": 0}  # fmt: skip
    return graph(stuck(), attributes=[{**usual, **facts}])


def frozen_end(**facts: Any) -> Made:
    """Two layers in a row, the second of which is frozen at its random start."""
    made = well().module("a", parameters=["a.weight"]).module("b", parameters=["b.weight"])
    usual = {"requires_grad": False, "groups": [], "with_grad": 0, "moved": [0, 40],
             "untouched": True}  # fmt: skip
    made.info["ops"] = [
        {"site": "a", "op": "linear", "from": []},
        {"site": "b", "op": "linear", "from": [0]},
    ]
    return made.parameter("a.weight").parameter("b.weight", **{**usual, **facts})


def with_backbone(**facts: Any) -> Made:
    """A run that does well, with a layer of these facts before the one that learns."""
    made = well().module("a", parameters=["a.weight"]).module("b", parameters=["b.weight"])
    return made.parameter("a.weight", **facts).parameter("b.weight")


def still(**facts: Any) -> Made:
    """A layer that never gets a gradient, alone in its model."""
    usual = {"with_grad": 0, "moved": [0, 40]}
    return stuck().module("a", parameters=["a.weight"]).parameter("a.weight", **{**usual, **facts})


def modes(kind: str, *changes: list[Any], calls: int = 0, **facts: Any) -> Made:
    """A norm or dropout with changes of its mode, behind a layer with the same."""
    made = stuck().module("fc", activation="linear", modes=list(changes))
    return made.module(
        "modal", activation=kind, modes=list(changes), calls={"train": 200, "eval": calls}, **facts
    )


def decay(*groups: float) -> Made:
    """An optimizer with these weight decays, and weights that shrink."""
    made = stuck().rate(0.01, *[0.01] * 199).parameter("fc.weight")
    made.event("groups", groups=[{"weight_decay": each} for each in groups])
    return made.series("fc.weight", "params", rms=np.geomspace(1.0, 0.01, 200))


def sparse(made: Made, share: float) -> Made:
    """A rectifier with a hundred units, of which a share is dead."""
    dead = round(100 * share)
    return made.module("act", activation="rectifier").units(
        "act", [False] * dead + [True] * (100 - dead)
    )


def answers(made: Made, counts: list[int], accuracy: float = 0.1) -> Made:
    """Losses with these answers."""
    made.losses.clear()
    return made.record(*range(0, 200, 20), **CLASSES, argmax_counts=counts, accuracy=accuracy)


def evaluated(values: list[float]) -> Made:
    """A run that learns, with these losses of its evaluations."""
    at = np.linspace(10, 199, len(values)).astype(int).tolist()
    return well().loss(values, "train.py:30", "eval", at=at)


def spikes(made: Made, size: float) -> Made:
    """Adam, with updates that spike."""
    update = np.full(200, 1e-3)
    update[48::32] *= size
    made.parameter("fc.weight").series("fc.weight", "second_moment", mean=1e-8)
    return made.loop("update_ratio", update).loop("grad_norm", 1.0)


def explosion(made: Made) -> Made:
    """A gradient that grows out of all bounds."""
    return made.loop("grad_norm", np.r_[np.full(100, 2.0), np.geomspace(2, 1e9, 100)])


def swinging() -> Made:
    """Updates that undo each other."""
    made = bad(2.5 + 0.6 * np.tile([1.0, -1.0], 100))
    return made.parameter("fc.weight").series("fc.weight", "update_cosine", mean=-0.95)


def collapsing(*rates: float) -> Made:
    """A schedule."""
    return stuck().loop("schedules", 1).rate(*rates)


def lost(*rates: float, end: float = 2.4, targets: float = 1.0) -> Made:
    """A run that learns for 120 steps, and is back where it began for the rest."""
    made = Made().loss(np.r_[falling(120), flat(80, end)])
    size = {"mean": 0.0, "std": 1.0}
    made.record(0, 40, 80, floored=True, target=size)
    made.record(140, 180, floored=True, target={"mean": 0.0, "std": targets})
    return made.rate(*(rates or [0.01] * 200))


def calls(*orders: list[str], clips: float = 1) -> Made:
    """A loop with these orders of its calls, the first one without what came before the watch."""
    made = well().loop("clips", clips)
    for step, order in enumerate(orders):
        made.event("order", step, calls=order, lines={"clip": "train.py:12"})
    return made


def micro_batches(**seen: int) -> Made:
    """Four passes per step, of which three are wiped; and what was seen of the first steps."""
    made = well().loop("backwards", 4).loop("wiped_backwards", 3).loop("empty_gradients", 0)
    return made.event("wiped-passes", 6, steps=6, wiped=18, **seen)


def ranks(*values: list[float]) -> Made:
    """Fingerprints of ranks."""
    made = well()
    for number, each in enumerate(values):
        made.rank(number, each)
    return made


def narrow(
    made: Made,
    still: float = 0.9,
    without: float = 0.1,
    dtype: str = "bfloat16",
    rate: float = 1e-4,
) -> Made:
    """Weights of 16 bits, of whose elements a step leaves this share as they are."""
    made.parameter("a.weight", dtype=dtype).rate(*[rate] * made.count)
    made.series("a.weight", "updates", zero_share=still)
    return made.series("a.weight", "param_grads", zero_share=without)


def listed(kind: str = "ModuleList", *names: str, owner: str = "heads.0") -> Made:
    """A list, and a layer that stands in it under these names."""
    made = well().module("heads", kind, leaf=False, names=["heads"])
    made.module("heads.0", names=list(names or ("heads.0", "heads.1", "heads.2")))
    return made.parameter(f"{owner}.weight")


PROBABILITIES = {**CLASSES, "chain": ["NllLoss", "LogSoftmax", "Softmax"]}
NUMBERS = {"shape": [32, 1], "distinct": 5, "min": 0.0, "max": 4.0, "mean": 2.0, "std": 1.41}
WIDE = {"shape": [32, 1], "min": -3.0, "max": 3.0, "mean": 0.0, "std": 1.0}
ON, OFF = [0, "train", True], [0, "train", False]


def narrow_middle(made: Made | None = None, units: int = 1, middle: str = "relu") -> Made:
    """Two layers with a few units between them."""
    made = made or stuck()
    ops = [("a", "linear", []), ("", middle, [0]), ("b", "linear", [1])]
    made.info["ops"] = [
        {"site": site, "op": op, "from": before, "odd": False} for site, op, before in ops
    ]
    made.module("a").parameter("a.weight", shape=[units, 7])
    return made.module("b").parameter("b.weight", shape=[100, units])


def untrained_twin(steps: int = 200) -> Made:
    """After the training another network of the same kind was called."""
    made = well(steps)
    made.info["untrained_twins"] = [{"kind": "Net", "weights": 4}]
    return made


ILL: dict[str, Run] = {
    "missing-step": lambda: Made().loop("optimizer_steps", 0),
    "missing-zero-grad": lambda: Made().loop("old_gradients", np.r_[0.0, np.ones(199)]),
    "gradient-wiped": lambda: Made().loop("wiped_backwards", 1).loop("empty_gradients", 1),
    "call-without-effect": lambda: calls(
        ["forward", "backward", "step", "clip"],
        ["zero_grad", "forward", "backward", "step", "clip"],
    ),
    "diverged": lost,
    "optimizer-misses-parameters": lambda: cut(groups=[], moved=[0, 40]),
    "no-gradient": lambda: cut(with_grad=0, moved=[0, 40]),
    "unregistered-layers": lambda: graph(stuck(), others=[loose()]),
    "stale-optimizer": lambda: graph(
        stuck(), unheld=[loose(address="fc.weight")], optimizers=orphaned()
    ),
    "eval-mode-training": lambda: modes(
        "norm", ON, [40, "train", False], parameters=["n"]
    ).parameter("n"),
    "train-mode-evaluation": lambda: modes("dropout", ON, calls=30).loss(
        [2.0, 1.9, 1.8], "e", "eval"
    ),
    "clipped-before-unscale": lambda: Made().loop("clips", 1).loop("scaled_clips", 1),
    "unscaled-accumulation": lambda: well().loop("backwards", 4),
    "scheduler-collapse": lambda: collapsing(*(0.1 * 0.5**step for step in range(200))),
    "softmax-before-cross-entropy": lambda: Made().record(**PROBABILITIES),
    "loss-target-mismatch": lambda: Made().record(
        kind="mse", prediction={"shape": [32, 1]}, target={**NUMBERS, "integral": True}
    ),
    "loss-broadcast": lambda: Made().record(
        kind="mse", broadcast=True, prediction={"shape": [32, 1]}, target={"shape": [32]}
    ),
    "negative-loss": lambda: Made().record(kind="mse", negated=True, value=-3.0),
    "target-misaligned": lambda: Made().examined(
        "predictions line up with targets", positions=40, position=6, made_of=[18, 19, 20]
    ),
    "sees-the-future": lambda: Made().examined("no look ahead", shift=1, reach=-1, tried=4),
    "target-shifted": lambda: Made().examined("what the target is", what="shifted", ahead=2),
    "target-is-input": lambda: Made().examined(
        "what the target is", what="input", place=23, places=24, samples=32
    ),
    "samples-mixed": lambda: Made().examined(
        "samples are independent", samples=32, others=0.7, shown="the loader says so", smooth=True
    ),
    "random-evaluation": lambda: Made().examined(
        "evaluation repeats itself", differs=0.4, operation="F.dropout", p=0.5
    ),
    "output-range": lambda: Made().record(kind="mse", chain=["MseLoss", "Relu"], target=WIDE),
    "input-not-normalized": lambda: inputs(stuck(), 120.0, 60.0),
    "input-collapsed": lambda: inputs(stuck(), 0.002, 0.001),
    "input-ignored": lambda: (
        stuck().batch("output_spread", 0.0).batch("input_spread", 0.7).batch("size", 32)
    ),
    "padding-read": lambda: stuck().examined("the words matter", sequences=32, share=0.6),
    "repeated-batch": lambda: well().batch("repeated", np.r_[0.0, np.ones(199)]).batch("size", 32),
    "symmetric-init": lambda: cut(
        rows=16, distinct_rows={"0": 1, "1": 1}, distinct_grad_rows={"0": 1, "1": 1}
    ),
    "bad-init-scale": lambda: scales(stuck(), 10.0, 100.0, 1000.0),
    "bottleneck-too-narrow": narrow_middle,
    "weights-not-restored": untrained_twin,
    "missing-activation": lambda: chain(("a", "linear", True), ("b", "linear", True)),
    "learning-rate-too-high": lambda: bad(np.geomspace(2.3, 900, 200)).loop("update_ratio", 0.4),
    "learning-rate-too-low": lambda: stuck().loop("update_ratio", 1e-7).loop("grad_norm", 1.0),
    "oscillating-loss": swinging,
    "weight-decay-too-strong": lambda: decay(50.0),
    "clipping-too-tight": lambda: (
        stuck().loop("grad_norm_unclipped", 3.0).loop("grad_norm", 1e-3).loop("clip_limit", 1e-3)
    ),
    "adam-instability": lambda: spikes(stuck(), 50),
    "update-below-precision": lambda: narrow(stuck()),
    "shared-layers": listed,
    "batchnorm-small-batch": lambda: modes("norm", ON, batch=[2, 2, 2]),
    "dead-units": lambda: sparse(stuck(), 0.8),
    "saturated-activation": lambda: (
        stuck()
        .module("t", activation="bounded")
        .series("t", "outputs", near_share=0.97)
        .module("out", activation="linear")
    ),
    "vanishing-gradient": lambda: layers(stuck(), a=1e-9, b=1e-6, c=1e-3, d=1.0),
    "exploding-gradient": lambda: explosion(bad(np.geomspace(2, 1e12, 200))),
    "non-finite": lambda: well().event("non-finite", 57, "log", "", site="log", reason="log of 0"),
    "class-collapse": lambda: answers(stuck(), [0] * 7 + [160] + [0] * 2),
    "not-learning": stuck,
    "missing-terminal-mask": lambda: well().examined("episodes end", "question", rows=64),
    "critic-in-policy-loss": lambda: graph(well(), critics={"train.py:9": 9}),
    "optimizer-recreated": lambda: remade(200),
    "position-ignored": lambda: stuck().examined("the order matters", "question", steps=9),
    "term-without-gradient": lambda: well().examined(
        "every term has a gradient", how="a plain number", lines=["train.py:9"]
    ),
    "axes-scrambled": lambda: stuck().examined(
        "axes keep their meaning", given=[64, 8, 8, 3], made=[64, 3, 8, 8]
    ),
    "softmax-over-one": lambda: stuck().examined("a softmax has a choice", given=[32, 9, 1], dim=2),
    "doubtful-result": lambda: (
        Made(200).loss(falling(200, 2.0, 1.9)).record(kind="other", floored=True)
    ),
    "overfitting": lambda: evaluated([2.0, 1.2, 1.0, 1.1, 1.3, 1.5, 1.8, 2.1]),
    "unused-module": lambda: (
        cut(with_grad=0)
        .module("c", first_call=None, parameters=["c.weight"])
        .parameter("c.weight", with_grad=0)
    ),
    "replica-divergence": lambda: ranks([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 3.5, 4.5]),
    **ill_losses.ILL,
}

HEALTHY: dict[str, list[Run]] = {
    "missing-step": [
        Made,
        lambda: Made(4).loop("optimizer_steps", 0),
        # Weights are moved by hand, or by an optimizer that is not torch's.
        lambda: Made().loop("optimizer_steps", 0).rank(0, [1.0, 2.0, 3.0]),
        lambda: graph(
            Made().loop("optimizer_steps", 0),
            unheld=[loose(address="w", moved=True)],
            optimizers=[],
        ),
        # The gradient of an input is wanted: an attack.
        lambda: graph(Made().loop("optimizer_steps", 0), tensors=1, optimizers=[]),
        # The optimizer that steps holds other tensors: that is another fault.
        lambda: graph(Made().loop("optimizer_steps", 0), optimizers=orphaned()),
        lambda: Made().loop("optimizer_steps", 0).loop("skipped_steps", 1),
    ],
    "missing-zero-grad": [Made, lambda: Made().loop("old_gradients", [0, 1, 1] + [0] * 197)],
    "gradient-wiped": [
        lambda: Made().loop("wiped_backwards", 0.5).loop("empty_gradients", 0),
        lambda: micro_batches(moved=6),  # SAM
        lambda: micro_batches(inputs=6),  # adversarial examples
        lambda: micro_batches(other=6),  # PCGrad
        lambda: micro_batches().record(name="train.py:30"),  # two losses
    ],
    "call-without-effect": [
        lambda: graph(stuck()),
        lambda: misspelt(count=0),
        well,
        lambda: calls(["zero_grad", "forward", "backward", "clip", "step"]),
        lambda: calls(["zero_grad", "forward", "backward", "step", "clip"], clips=0.01),
        # The gradients of a second optimizer.
        lambda: calls(["zero_grad", "forward", "backward", "step", "clip", "step"]),
        # Nobody clears them: the next pass adds to what was clipped.
        lambda: calls(["forward", "backward", "step", "clip"]),
        # Now and then it is in the right place.
        lambda: calls(
            ["forward", "backward", "step", "clip"],
            ["zero_grad", "forward", "backward", "step", "clip"],
            ["zero_grad", "forward", "backward", "clip", "step"],
        ),
    ],
    "diverged": [
        well,
        stuck,
        lambda: lost(end=0.6),
        lambda: lost(targets=3.0),  # Q-learning: the targets grow, and the loss with them
        # A policy's loss goes up and down, and says nothing.
        lambda: Made().loss(np.r_[falling(120), flat(80, 2.4)]).record(floored=False),
        # It comes down again: a restart of the schedule, a new class.
        lambda: bad(np.r_[falling(120), falling(80)]),
        # It has been up for a few steps only.
        lambda: bad(np.r_[falling(192), flat(8, 2.4)]),
        # Two losses that play against each other.
        lambda: lost().loss(flat(200, 0.7), "train.py:20"),
    ],
    "optimizer-misses-parameters": [
        cut,
        lambda: cut(groups=[], moved=[40, 40]),
        lambda: cut(groups=[], moved=[0, 40], with_grad=2),
        lambda: cut(groups=[], moved=[0, 40], requires_grad=False),
        # A second network: trained by other code, met once, a copy of the model, or in eval mode.
        lambda: graph(cut(), others=[loose(how="module", where="teacher", moved=True)]),
        lambda: graph(cut(), others=[loose(how="module", where="inner", looks=1)]),
        lambda: graph(cut(), others=[loose(how="module", where="vgg", training=False)]),
        lambda: graph(cut(), others=[loose(how="list", where="blocks")]),
        # The model was changed after its optimizer was made: `stale-optimizer`.
        lambda: graph(cut(groups=[], moved=[0, 40]), optimizers=orphaned()),
    ],
    "unregistered-layers": [
        lambda: graph(stuck()),
        lambda: graph(stuck(), others=[loose(moved=True)]),
        lambda: graph(stuck(), others=[loose(filled=True)]),  # a fixed network that is hidden
        lambda: graph(stuck(), others=[loose(looks=2)]),
        lambda: graph(stuck(), others=[loose()], optimizers=[]),
        lambda: graph(stuck(), others=[loose(how="module", where="critic")]),
        lambda: graph(stuck(), others=[loose(how="attribute", where="teacher")]),
    ],
    "stale-optimizer": [
        lambda: graph(stuck(), optimizers=orphaned()),  # experts that are idle
        lambda: graph(stuck(), unheld=[loose(address="fc.weight")]),
        lambda: graph(stuck(), unheld=[loose(address="w", moved=True)], optimizers=orphaned()),
        lambda: graph(stuck(), unheld=[loose(address="w", looks=1)], optimizers=orphaned()),
        lambda: graph(stuck(), unheld=[loose(address="w")], optimizers=orphaned(steps=0)),
        lambda: graph(stuck(), others=[loose(how="module")], optimizers=orphaned()),
    ],
    "no-gradient": [
        cut,
        lambda: cut(with_grad=0, moved=[0, 40], groups=[]),
        lambda: cut(with_grad=0, moved=[0, 3], steps=3),
        lambda: cut(with_grad=0, moved=[40, 40]),
        # Forces: the bias of the last layer is in no gradient of a gradient.
        lambda: graph(cut().parameter("a.bias", with_grad=0, moved=[0, 40]), second_order=True),
        # A backbone that was loaded and runs without gradients.
        lambda: with_backbone(with_grad=0, moved=[0, 40], filled=True),
        # Frozen at the end: loaded, a kernel of its own, or moved by other code.
        lambda: frozen_end(untouched=False),
        lambda: frozen_end(moved=[40, 40]),
        lambda: frozen_end(shape=[16]),
        # No gradient at all: nobody steps, weights move, or graphs have parameters.
        lambda: graph(still().loop("optimizer_steps", 0), without=11),
        lambda: graph(still(moved=[40, 40]), without=11),
        lambda: graph(still(), without=10),
        still,
    ],
    "eval-mode-training": [
        lambda: modes("norm", ON),
        lambda: modes("norm", OFF, parameters=["n"]).parameter("n", groups=[]),
        lambda: modes("norm", ON, [199, "train", False], parameters=["n"]).parameter("n"),
        lambda: modes(
            "norm", *([at, "train", at % 2 == 0] for at in range(16)), parameters=["n"]
        ).parameter("n"),
    ],
    "train-mode-evaluation": [
        lambda: modes("dropout", ON, [28, "eval", False], calls=30).loss([2.0, 1.9], "e", "eval"),
        lambda: modes("dropout", ON, calls=30),
        lambda: modes("dropout", ON, calls=30).loss([2.0], "e", "eval"),
    ],
    "clipped-before-unscale": [lambda: Made().loop("clips", 1).loop("scaled_clips", 0)],
    "unscaled-accumulation": [
        well,
        lambda: Made().loss(falling(200)).loop("backwards", 4).record(divided_by=4.0),
    ],
    "scheduler-collapse": [
        lambda: collapsing(*np.linspace(0.1, 0, 200)),
        lambda: collapsing(*(0.05 * (1 + np.cos(np.pi * (np.arange(200) % 50) / 50)))),
    ],
    "softmax-before-cross-entropy": [
        lambda: Made().record(**{**CLASSES, "chain": ["NllLoss", "LogSoftmax", "Addmm"]})
    ],
    "loss-target-mismatch": [
        lambda: Made().record(
            kind="mse", prediction={"shape": [32, 1]}, target={**NUMBERS, "integral": False}
        ),
        lambda: Made().record(
            kind="mse",
            prediction={"shape": [32, 1]},
            target={**NUMBERS, "std": 0.6, "integral": True},
        ),
    ],
    "loss-broadcast": [
        lambda: Made().record(
            kind="mse", broadcast=True, prediction={"shape": [32, 3]}, target={"shape": [3]}
        )
    ],
    "target-misaligned": [
        lambda: Made().examined("predictions line up with targets", "fine", samples=32, tried=3),
        lambda: Made().examined("predictions line up with targets", "not applicable", "why"),
    ],
    "sees-the-future": [
        lambda: Made().examined("no look ahead", "fine", shift=1, reach=0, tried=4),
        lambda: Made().examined("no look ahead", shift=1, reach=-1, tried=1),
    ],
    "target-shifted": [
        lambda: Made().examined("what the target is", "fine", shift=1, ahead=1),
        lambda: Made().examined("what the target is", what="input", ahead=0),
    ],
    "target-is-input": [
        lambda: Made().examined("what the target is", "fine", shift=0, ahead=0),
        lambda: Made().examined("what the target is", what="shifted", ahead=2),
    ],
    "samples-mixed": [
        lambda: Made().examined("samples are independent", "fine", samples=32, others=0.0),
        lambda: Made().examined("samples are independent", "not applicable", "a graph"),
    ],
    "random-evaluation": [
        lambda: Made().examined("evaluation repeats itself", "fine", differs=0.0),
        lambda: Made().examined("evaluation repeats itself", "failed", "no"),
    ],
    "negative-loss": [
        lambda: Made().record(kind="linear", negated=True, value=-3.0),
        lambda: (
            Made()
            .record(kind="mse", value=3.0)
            .event("groups", groups=[{"maximize": True}, {"maximize": False}])
        ),
        lambda: Made().record(kind="mse", value=3.0),
    ],
    "output-range": [
        lambda: Made().record(kind="mse", chain=["MseLoss", "Addmm"], target=WIDE),
        lambda: Made().record(kind="mse", chain=["MseLoss", "Relu"], target={**WIDE, "min": 0.0}),
    ],
    "input-not-normalized": [
        lambda: inputs(well(), 120.0, 60.0),
        lambda: inputs(stuck(), 0.1, 1.0),
        lambda: inputs(stuck(), 500.0, 300.0, "int64"),
    ],
    "input-collapsed": [lambda: inputs(well(), 0.002, 0.001), lambda: inputs(stuck(), 0.0, 1.0)],
    "input-ignored": [
        lambda: stuck().batch("output_spread", 1e-3).batch("input_spread", 0.7).batch("size", 32),
        lambda: (
            layers(stuck(), a=1e-9, b=1e-5, c=1.0)
            .batch("output_spread", 0.0)
            .batch("input_spread", 0.7)
            .batch("size", 32)
        ),
        lambda: stuck().batch("output_spread", 0.0).batch("input_spread", 0.7).batch("size", 1),
    ],
    "padding-read": [
        stuck,
        lambda: stuck().examined("the words matter", "fine"),
        lambda: stuck().examined("the words matter", "not applicable", "nothing is padded"),
        lambda: stuck().examined("the words matter", "failed"),
        lambda: well().examined("the words matter", sequences=32, share=0.6),
    ],
    "repeated-batch": [
        lambda: well().batch("repeated", 0).batch("size", 32),
        lambda: well().examined("the loader reaches every sample", "fine"),
    ],
    "symmetric-init": [
        lambda: cut(rows=16, distinct_rows={"0": 1, "1": 16}, distinct_grad_rows={"0": 16, "1": 16})
    ],
    "bad-init-scale": [
        lambda: scales(stuck(), 1.0, 1.2, 0.8),
        lambda: scales(well(), 10.0, 100.0, 50.0),
    ],
    "bottleneck-too-narrow": [
        lambda: narrow_middle(units=2),
        lambda: narrow_middle(well()),
        lambda: narrow_middle().examined("what the target is", what="same"),
        Made,
    ],
    "weights-not-restored": [well, lambda: untrained_twin(19)],
    "missing-activation": [
        lambda: chain(("a", "linear", True), ("r", "relu", False), ("b", "linear", True)),
        Made,
    ],
    "learning-rate-too-high": [
        lambda: well().loop("update_ratio", 0.4),
        lambda: stuck().loop("update_ratio", 1e-3),
        lambda: bad(np.tile([0.03, 0.06, 0.3, 0.9, 2.5, 5.7], 2)).loop("update_ratio", 0.05),
    ],
    "learning-rate-too-low": [
        lambda: well().loop("update_ratio", 1e-7).loop("grad_norm", 1.0),
        lambda: stuck().loop("update_ratio", 1e-7).loop("grad_norm", 1e-9),
        # A network that was trained before, and is tuned.
        lambda: bad(flat(200, 0.3)).loop("update_ratio", 1e-7).loop("grad_norm", 1.0),
    ],
    "oscillating-loss": [
        stuck,
        lambda: well().parameter("w").series("w", "update_cosine", mean=-0.95),
    ],
    "weight-decay-too-strong": [lambda: decay(0.01), lambda: decay(0.0)],
    "clipping-too-tight": [
        lambda: well().loop("grad_norm_unclipped", 3.0).loop("grad_norm", 1e-3),
        lambda: stuck().loop("grad_norm_unclipped", 3.0).loop("grad_norm", 1.0),
        lambda: stuck().loop("grad_norm_unclipped", 3e5).loop("grad_norm", 1.0),
    ],
    "adam-instability": [lambda: spikes(well(), 50), lambda: spikes(stuck(), 2)],
    "update-below-precision": [
        lambda: narrow(well()),  # an optimizer that rounds by chance
        lambda: narrow(stuck(), dtype="float32"),
        lambda: narrow(stuck(), still=0.5),
        lambda: narrow(stuck(), still=0.95, without=0.94),  # rows that were not looked up
        lambda: narrow(stuck(), still=1.0, rate=0.0),
        lambda: narrow(stuck()).loop("skipped_steps", 0.5),
    ],
    "shared-layers": [
        lambda: listed("ModuleList", "heads.0"),
        lambda: listed("Net"),  # a network of its own that names one layer thrice
        lambda: listed("ModuleList", "heads.0", "head"),
        lambda: listed("ModuleList", "heads.0", "others.0"),
        lambda: listed(owner="trunk"),  # no weights: one activation for all
        lambda: listed(owner="heads.01"),
    ],
    "batchnorm-small-batch": [
        lambda: modes("norm", ON, batch=[2, 32, 32]),
        lambda: modes("norm", OFF, batch=[2, 2, 2]),
    ],
    "dead-units": [lambda: sparse(well(), 0.8), lambda: sparse(stuck(), 0.2)],
    "saturated-activation": [
        lambda: (
            well()
            .module("t", activation="bounded")
            .series("t", "outputs", near_share=0.97)
            .module("out")
        ),
        lambda: (
            stuck()
            .module("t", activation="bounded")
            .series("t", "outputs", near_share=0.5)
            .module("out")
        ),
        lambda: stuck().module("t", activation="bounded").series("t", "outputs", near_share=0.97),
    ],
    "vanishing-gradient": [
        lambda: layers(well(), a=1e-9, b=1e-6, c=1.0),
        lambda: layers(stuck(), a=0.1, b=0.3, c=1.0),
    ],
    "exploding-gradient": [lambda: explosion(well()), lambda: stuck().loop("grad_norm", 2.0)],
    "non-finite": [well],
    "class-collapse": [
        lambda: answers(stuck(), [16] * 10),
        lambda: answers(well(), [0] * 9 + [160]),
    ],
    "not-learning": [
        well,
        lambda: stuck(40),
        lambda: Made(200).loss(np.r_[flat(150, 2.31), falling(50)]).record(**CLASSES),
    ],
    "missing-terminal-mask": [
        well,
        lambda: well().examined("episodes end", "fine", rows=64, numbers=2),
        lambda: well().examined("episodes end", "not applicable", "the target is of another kind"),
    ],
    "critic-in-policy-loss": [
        well,
        lambda: graph(well(), critics={}),
        lambda: graph(well(), critics={"train.py:9": 2}),
    ],
    "optimizer-recreated": [
        well,
        lambda: remade(3),
        lambda: remade(200, "SGD", momentum=0),
    ],
    "position-ignored": [
        well,
        lambda: well().examined("the order matters", "question", steps=9),
        lambda: stuck().examined("the order matters", "fine"),
    ],
    "term-without-gradient": [
        well,
        lambda: well().examined("every term has a gradient", "fine", sums=1),
        lambda: well().examined("every term has a gradient", "not applicable", "no sum"),
    ],
    "axes-scrambled": [
        well,
        lambda: stuck().examined("axes keep their meaning", "fine", views=2),
        lambda: stuck().examined("axes keep their meaning", "not applicable", "nothing is viewed"),
    ],
    "softmax-over-one": [
        well,
        lambda: stuck().examined("a softmax has a choice", "fine", calls=2),
        lambda: stuck().examined("a softmax has a choice", "not applicable", "no softmax"),
    ],
    "doubtful-result": [
        well,
        stuck,  # what a guess scores is known: `not-learning` has its say
        lambda: Made(200).loss(falling(200, 2.0, 1.0)).record(kind="other", floored=True),
        lambda: well().examined("answers fit their samples", "fine", own=0.1, others=1.0),
        lambda: well().examined("answers fit their samples", "fine", own=-4.0, others=-1.0),
        lambda: Made(40).loss(flat(40)).record(kind="other", floored=True),
    ],
    "overfitting": [
        lambda: evaluated([2.0, 1.2, 1.0, 0.9, 0.85, 0.83, 0.82]),
        lambda: evaluated([2.0, 1.0, 1.6]),
        lambda: evaluated([1.0, 1.3, 0.9, 1.2, 0.95, 1.25, 0.9, 1.2, 0.95]),
    ],
    "unused-module": [
        cut,
        lambda: well().module("c", first_call=None, parameters=["c.weight"]).parameter("c.weight"),
    ],
    "replica-divergence": [
        lambda: ranks([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        lambda: ranks([1.0, 2.0]),
    ],
    **ill_losses.HEALTHY,
}
