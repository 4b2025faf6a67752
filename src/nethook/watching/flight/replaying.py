"""`nethook.replay`: the batch of the first NaN once more, operation by operation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.func import functional_call

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.addresses.paths import show_path
from nethook.addresses.tree import Tree
from nethook.addresses.wrappers import unwrap
from nethook.errors import InputsError
from nethook.hooks.attachment import Attachment
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.scope import Scope
from nethook.hooks.suspend import suspended
from nethook.restoring.unchanged import unchanged
from nethook.stats.repeats import unexpanded
from nethook.watching.flight.file import Flight, load
from nethook.watching.flight.loss import compute_again
from nethook.watching.flight.ranges import Range, is_finite, ranges_of
from nethook.watching.flight.reasons import backward_reason, forward_reason
from nethook.watching.flight.replay_ops import (
    DATA,
    PARAMETERS,
    Finder,
    Findings,
    FoundNode,
    GradientFinder,
    SeenOp,
    op_of,
)
from nethook.watching.flight.ring import set_random_states

if TYPE_CHECKING:
    from nethook.text.table import Table

Loss = Callable[[Any], torch.Tensor]

_MODEL = "model"  # the name of the model inside `_Whole`


@dataclass(frozen=True)
class Replay:
    """What a replay has found: the operation that made the first NaN, and why.

    Attributes:
        step: the step of the run.
        case: `forward`, `loss`, `backward`, `optimizer`, `parameters` or `data`.
        reproduced: whether it happened again.
        site: the module whose forward ran the operation; `loss` where it is the loss function.
        operation: the operation's address, `fc1/log#0`.
        reason: why, in words.
        inputs: ranges of what the operation was given (in a backward: of the gradient too).
        output: ranges of what it made.
        source: the line of code.
        recorded: what the watch had found when it happened.
    """

    step: int
    case: str
    reproduced: bool
    site: str = ""
    operation: str = ""
    reason: str = ""
    inputs: tuple[Range, ...] = ()
    output: tuple[Range, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()
    recorded: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data = asdict(self)
        data["inputs"] = [value_range.to_dict() for value_range in self.inputs]
        data["output"] = [value_range.to_dict() for value_range in self.output]
        data["notes"] = list(self.notes)
        return data

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        from nethook.text.table import Table

        if self.reproduced:
            title = f"step {self.step}: {self.operation or self.case} made it ({self.case})"
        else:
            title = f"step {self.step}: it did not happen again ({self.case})"
        rows = [("reason", self.reason), ("source", self.source)]
        rows += [("given", str(value_range)) for value_range in self.inputs]
        rows += [("made", str(value_range)) for value_range in self.output]
        rows += [("recorded", str(self.recorded.get("message", "")))]
        rows += [("note", note) for note in self.notes]
        return Table(title, ("what", "says"), [row for row in rows if row[1]])


def replay(
    path: str | Path, model: nn.Module, *, inputs: object = None, loss: Loss | None = None
) -> Replay:
    """Run the batch of a run's first NaN again, and name the operation that made it.

        print(nethook.replay("runs/mnist.db", model))

    Batch, random states, autocast and, where they were still held, the weights are those of the
    step. Everything is left as it was (docs/sites.md says what that means).

    Arguments:
        path: the run, or the `.flight.safetensors` file beside it.
        model: the network of that run, built in the same way. Its weights do not matter unless
            the file has none.
        inputs: a batch in the place of the saved one.
        loss: a function of the model's output that gives the loss, for cases in which it takes
            part. torch's own losses of an output are known without it; for any other, the backward
            is tried with a gradient of ones.

    Returns:
        A `Replay`: site, operation, reason, ranges, source line, step.

    Raises:
        NoSuchRunError: the run has no such file.
        NotARunError: the file is none of nethook's.
        InputsError: the model is another one, or the batch could not be saved as a whole.
    """
    model = unwrap(model)  # operations inside a compiled graph could not be seen
    flight = load(path)
    model = _part_of(flight, model)
    given = _inputs(flight, inputs)
    state, notes = _state(flight, model)
    args, kwargs, kept = _moved((given.args, dict(given.kwargs), flight.loss), _device(model))
    whole = _Whole(model, loss or _loss_of(kept))
    tree = Tree(whole)
    with (
        unchanged(model, given),
        _as_in_the_step(flight, model),
        suspended(model),
        Scope("nethook.replay", tree) as hooks,
    ):
        finder = Finder((args, kwargs, kept), state)
        watch_ops(tree, hooks, finder)
        with torch.enable_grad():
            output = functional_call(whole, state, args, kwargs)
        finder.conclude(output)
        findings = finder.findings
        if _is_optimizers(flight, findings):
            return _not_again(flight, notes, with_loss=True)
        if _made_it(findings, output):
            return _forward_result(flight, findings, notes)
        node = _backward(output, hooks)
        if node is not None:
            return _backward_result(flight, findings, node, notes)
    return _not_again(flight, notes, with_loss=whole.loss is not None)


class _Whole(nn.Module):
    """The model and its loss as one module, so that operations of both have an address."""

    def __init__(self, model: nn.Module, loss: Loss | None) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The loss; the model's output where there is none."""
        output = self.model(*args, **kwargs)
        return output if self.loss is None else self.loss(output)


# -- setting up ------------------------------------------------------------------------------------


def _part_of(flight: Flight, model: nn.Module) -> nn.Module:
    """What was called: of a model that is never called as a whole, the part that served as it."""
    called = flight.training.keys()
    if called <= _names(model):
        return model
    parts = [part for part in model.modules() if called == _names(part)]
    return parts[0] if len(parts) == 1 else model


def _names(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_modules()}


def _inputs(flight: Flight, given: object) -> Inputs:
    if given is not None:
        return as_inputs(given)
    missing = [name for name in flight.left_out if name.startswith(("args", "kwargs"))]
    if missing:
        raise InputsError(
            "The batch could not be saved as a whole: the file cannot hold "
            f"{', '.join(missing)}. Pass one with `inputs=nethook.inputs(...)`."
        )
    return Inputs(flight.args, flight.kwargs)


def _state(flight: Flight, model: nn.Module) -> tuple[dict[str, torch.Tensor], list[str]]:
    """The weights to run with, by name in `_Whole`; copies, so that nothing is written to."""
    own = dict((*model.named_parameters(), *model.named_buffers()))
    notes = []
    saved: dict[str, Any] = flight.weights
    if not saved:
        notes.append("the weights of the step were not held: these are the model's own")
        saved = {name: tensor.detach() for name, tensor in own.items()}
    missing = [name for name, tensor in saved.items() if not isinstance(tensor, torch.Tensor)]
    missing = [name for name in missing if name in own]
    if missing:  # sparse, for one: a file cannot hold it
        notes.append(f"not held, and so the model's own: {', '.join(missing)}")
        saved = saved | {name: own[name].detach() for name in missing}
    if saved.keys() != own.keys() or any(saved[n].shape != own[n].shape for n in own):
        odd = sorted(saved.keys() ^ own.keys()) or [
            name for name in own if saved[name].shape != own[name].shape
        ]
        raise InputsError(
            f"The model is not that of the run: {', '.join(map(repr, odd[:4]))} "
            f"{'is' if len(odd) == 1 else 'are'} in one and not in the other, or of another shape."
        )
    state = {}
    for name, tensor in own.items():
        copy = saved[name].detach().to(device=tensor.device, dtype=tensor.dtype, copy=True)
        state[f"{_MODEL}.{name}"] = copy.requires_grad_(tensor.requires_grad)
    return state, notes


def _device(model: nn.Module) -> torch.device:
    first = next(iter((*model.parameters(), *model.buffers())), None)
    return torch.device("cpu") if first is None else first.device


def _moved(value: Any, device: torch.device) -> Any:
    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided or tensor.is_nested:
            return tensor.detach().to(device, copy=True).requires_grad_(tensor.requires_grad)
        stored = unexpanded(tensor.detach()).to(device, copy=True)
        return stored.expand(tensor.shape).requires_grad_(tensor.requires_grad)

    return map_tensors(moved, value)


def _loss_of(kept: dict[str, Any]) -> Loss | None:
    if not isinstance(kept.get("target"), torch.Tensor):
        return None

    def loss(output: Any) -> torch.Tensor:
        for path, tensor in tensors(output):
            if show_path(path) == kept.get("path", ""):
                return compute_again(kept, tensor)
        raise InputsError(
            f"The model's output has no tensor at {kept.get('path')!r}, which the loss was made of."
        )

    return loss


@contextlib.contextmanager
def _as_in_the_step(flight: Flight, model: nn.Module) -> Iterator[None]:
    """The step's random states, autocast and training flags for a block that is unchanged."""
    set_random_states(flight.random)
    names = dict(model.named_modules())
    for name, flag in flight.training.items():
        if name in names:
            names[name].training = flag
    with contextlib.ExitStack() as stack:
        for device, dtype in flight.autocast.items():
            stack.enter_context(torch.autocast(device, dtype=getattr(torch, dtype)))
        yield


# -- what came of it -------------------------------------------------------------------------------


def _made_it(findings: Findings, output: Any) -> bool:
    """Whether the forward has an operation to blame, for something that reached the end."""
    return (findings.made or findings.met) is not None and not is_finite(output)


def _is_optimizers(flight: Flight, findings: Findings) -> bool:
    """Whether parameters are not finite that an optimizer has made so."""
    return (
        flight.finding.get("case") == "optimizer"
        and findings.made is None
        and findings.met_from == PARAMETERS
    )


def _backward(output: Any, hooks: Attachment) -> FoundNode | None:
    roots = [tensor for _, tensor in tensors(output) if tensor.grad_fn is not None]
    if not roots:
        return None
    finder = GradientFinder(hooks.owner)
    for root in roots:
        finder.attach(root, hooks)
    torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])
    return finder.first


def _forward_result(flight: Flight, findings: Findings, notes: list[str]) -> Replay:
    op = findings.made
    case = str(flight.finding.get("case", "forward"))
    if op is not None:
        case = "loss" if op.site == "" else case if case in {"forward", "loss"} else "forward"
        reason = forward_reason(op.name, op.operands, _tensor(op.result))
    else:
        op = findings.met
        assert op is not None
        case = findings.met_from
        reason = "the batch is not finite" if case == DATA else "the parameters are not finite"
    return _result(flight, op, case, reason, notes, ranges_of(tuple(op.operands)))


def _backward_result(
    flight: Flight, findings: Findings, node: FoundNode, notes: list[str]
) -> Replay:
    op = op_of(node, findings.ops)
    made = tuple(value_range for value_range in ranges_of(node.grads_out, "gradient"))
    if op is None:
        reason = backward_reason(node.node, (), node.grads_in)
        return Replay(
            _step(flight), "backward", True, operation=node.node, reason=reason, output=made,
            notes=tuple(notes), recorded=flight.finding,
        )  # fmt: skip
    reason = backward_reason(op.name, op.operands, node.grads_in)
    given = ranges_of(tuple(op.operands)) + ranges_of(node.grads_in, "gradient")
    return _result(flight, op, "backward", reason, notes, given, made)


def _result(
    flight: Flight,
    op: SeenOp,
    case: str,
    reason: str,
    notes: list[str],
    given: list[Range],
    made: tuple[Range, ...] | None = None,
) -> Replay:
    return Replay(
        _step(flight),
        case,
        True,
        _outside(op.site),
        _outside(op.address),
        reason,
        tuple(given),
        tuple(ranges_of(op.result)) if made is None else made,
        op.source,
        tuple(notes),
        flight.finding,
    )


def _outside(address: str) -> str:
    """An address of the model, from one of `_Whole`; what stands in that itself is the loss."""
    if address == "" or address.startswith("/"):
        return f"loss{address}"
    inner = address.removeprefix(_MODEL)
    return inner.removeprefix(".")


def _not_again(flight: Flight, notes: list[str], *, with_loss: bool) -> Replay:
    case = str(flight.finding.get("case", ""))
    if case in {"loss", "backward"} and not with_loss:
        notes = [*notes, "the loss is not one of torch's: give it with `loss=`"]
    if case == "optimizer":
        notes = [*notes, "the optimizer made it: neither forward nor backward is at fault"]
    reason = str(flight.finding.get("reason", ""))
    site = str(flight.finding.get("site", ""))
    return Replay(
        _step(flight), case, False, site, reason=reason, notes=tuple(notes),
        recorded=flight.finding,
    )  # fmt: skip


def _step(flight: Flight) -> int:
    step = flight.finding.get("step", -1)
    return step if isinstance(step, int) else -1


def _tensor(value: Any) -> Any:
    pairs = tensors(value)
    return pairs[0][1] if pairs else None
