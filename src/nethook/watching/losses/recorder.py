"""The loss record: how each loss of a run was made, and its values.

At every backward pass the way from the loss to the model's output is compared with the one that is
known of this line of the script, which takes a few steps through the graph; only another way is
looked at in full. Prediction and target are measured in the steps in which the watch takes samples.
In passes without gradient the same record is made from the calls of torch's loss functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.hooks.modes import quiet
from nethook.hooks.process.source_line import ScriptLine, line_of_script
from nethook.stats.repeats import unexpanded
from nethook.stats.shards import is_shared, local_part
from nethook.stats.transfers import Transfers
from nethook.watching.evaluations.thinning import OFTEN, THINNING
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.losses.agreement import NAMES, agreement_numbers
from nethook.watching.losses.called_from import CalledFrom
from nethook.watching.losses.calls import operands_of_call, returned_loss, samples_of_call
from nethook.watching.losses.graph import Node, Term, follow, is_alike
from nethook.watching.losses.kept import Kept
from nethook.watching.losses.kinds import Operands, operands_of
from nethook.watching.losses.lines import Lines, Series
from nethook.watching.losses.marks import Marks
from nethook.watching.losses.numbers import Numbers, numbers_of, unpacked
from nethook.watching.losses.padding import NAMES as PADDING
from nethook.watching.losses.padding import padding_numbers
from nethook.watching.losses.parts import described, part_numbers, parts_of
from nethook.watching.losses.record import Analysis, analyse, shapes
from nethook.watching.losses.samples import length_of
from nethook.watching.losses.tally import Batch
from nethook.watching.losses.values import LossValues
from nethook.watching.recorder import Recorder

WAYS: Final = 8
"""Ways of making a loss that one line of a script may have; more are counted to the last."""


_Tensor: Final = torch.Tensor
_made: Final = tuple.__new__  # a named tuple in one call of C, not of Python


class Losses(FailsAlone, Recorder):
    """Tells of every loss, of backward passes and of passes without gradient.

    Arguments:
        journal: where records go.
        values: where the value of each goes, without the factor of a scaler.

    Cost: about 10 µs per backward pass; about 300 µs in the steps in which samples are taken.
    """

    part = "the loss record"
    rests = ("call_begins",)

    def __init__(self, journal: Journal, values: LossValues) -> None:
        self._watching: Journal = journal
        self._values = values
        self.off = False
        self._marks = Marks()
        self.unmarked: tuple[str, torch.Tensor, tuple[Any, ...]] | None = None
        """An output whose node has no mark yet, and what it was made from, until its loss is
        known."""
        self._transfers = Transfers()
        self._called_from = CalledFrom(self._saw_loss)
        self.lines = Lines()
        """Those of the script that make losses."""
        self._kept = Kept()
        self._given: float | None = None  # samples that a model was called with last
        self._held: tuple[str, Batch] | None = None  # a sum of losses inside a call of the model

    # -- calls --------------------------------------------------------------------------------

    def call_begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """A model is called: what it is given has as many samples as a loss that does not tell."""
        self._note_length(args, kwargs)
        training = self._watching.clock.calls.training
        if training and not self._called_from.done:
            self.called(module)
        if training and self._watching.schedule.samples:
            self._keep(args, kwargs)

    @contained
    def called(self, module: nn.Module) -> None:
        """A model is called in training, or a part of it alone."""
        self._called_from.model_called(module, self._watching.clock.totals["steps"])

    @contained
    def _saw_loss(
        self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        self._called_from.mark(result)

    @contained
    def _keep(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._kept.given(args, kwargs)

    @contained
    def _note_length(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._given = length_of(args, kwargs)

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """Marks the nodes that have made outputs, to know them again on the way from the loss.

        In a step in which nothing is due that waits until somebody asks: a loss whose way is known
        needs no marks. Until then the output lives as long as its loss.
        """
        journal = self._watching
        calls = journal.clock.calls
        if self._held is not None:
            self._count_held(output)
        if not calls.training or calls.in_backward or self.off:
            return
        if self.lines.loops.unsure is not None:
            self.lines.loops.called()
        if self.unmarked is not None:
            self._mark()
        if journal.schedule.quiet and type(output) is _Tensor:
            self.unmarked = (model, output, args)
            return
        for path, tensor in tensors(output):
            self._marks.put(tensor.grad_fn, model, path)
            if journal.schedule.samples:
                self._kept.returned(tensor)

    def _mark(self) -> None:
        if self.unmarked is not None:
            (model, output, args), self.unmarked = self.unmarked, None
            self._marks.put(output.grad_fn, model, ())
            if args:
                self._note_length(args, {})

    def forget(self) -> None:
        """Gradients are cleared: no loss of what was returned before will come."""
        self.unmarked = None

    # -- with gradient ------------------------------------------------------------------------

    def backward(
        self,
        roots: Sequence[torch.Tensor],
        scale: torch.Tensor | float | None = None,
        own: int = 0,
    ) -> bool:
        """A backward pass from `roots` is about to begin; `scale` is a loss scaler's factor.

        Whether all of them were read and are finite. `own`: see `line_of_script`.
        """
        (where, of_line), schedule, fine = self.lines.calling(own), self._watching.schedule, True
        quiet = schedule.quiet
        for root in roots:
            node = root.grad_fn
            if node is None:
                continue
            # In a step in which nothing is due, of a line that makes its loss in one way, the last
            # node alone is compared. Another way that ends in the same node is noticed in the next
            # step in which something is due.
            if quiet and len(of_line) == 1 and type(node) is of_line[0].root:
                series, new = of_line[0], False
            else:
                series, new = self._series(node, where, of_line, scaled=scale is not None)
            value = _value(root, scale)
            if value is None:
                fine = False
            else:
                count, divisor = series.counting, None
                samples = count.samples(node)
                if samples is None:
                    self._mark()
                    samples = self._given
                if count.factors:
                    divisor = count.divisor(node, scaled=scale is not None)
                batch = _made(Batch, (value, samples, divisor, count.summed))
                if not self._values.trained(series.name, batch):
                    fine = False
            if new or (schedule.samples and self._due(series)):
                series.last_record = self._watching.step
                self._record(series, node, value, scale)
        self.unmarked = None
        if not quiet:
            self._kept.clear()
        return fine

    def _series(
        self, node: Node, where: ScriptLine, of_line: list[Series], *, scaled: bool
    ) -> tuple[Series, bool]:
        """The series that a loss belongs to, and whether it is a new one."""
        self._mark()
        series = self._find(node, of_line)
        return (
            (series, False)
            if series is not None
            else self._add(node, where, of_line, scaled=scaled)
        )

    def _due(self, series: Series) -> bool:
        """Whether a step in which samples are taken gets a record: fewer than there are samples."""
        step, last = self._watching.step, series.last_record
        return step != last and (step < OFTEN or step >= THINNING * last)

    def _find(self, node: Node, of_line: list[Series]) -> Series | None:
        for series in of_line:
            analysis = series.analysis
            if analysis is None:
                continue
            if type(node) is not analysis.root and not is_alike(type(node), analysis.root):
                continue
            for steps in analysis.steps:
                if follow(node, steps) is None:
                    break
            else:
                return series
        return None

    def _add(
        self, node: Node, where: ScriptLine, of_line: list[Series], *, scaled: bool
    ) -> tuple[Series, bool]:
        if len(of_line) >= WAYS:
            return of_line[-1], False
        # What is kept of the graph is how to find its nodes again, and no node.
        analysis = _without_nodes(analyse(node, scaled=scaled))
        return self.lines.add(self._called_from.find(node, where), of_line, analysis), True

    def _record(
        self,
        series: Series,
        node: Node,
        value: torch.Tensor | float | None,
        scale: torch.Tensor | float | None,
    ) -> None:
        analysis = analyse(node, scaled=scale is not None)
        operands = operands_of(analysis.main, analysis.made, self._kept)
        data = analysis.data | {"scale": _number(scale)}
        more = Numbers()
        if len(analysis.terms) > 1 and "label_smoothing" not in analysis.made.options:
            parts = parts_of(node, data["scale"] or 1.0)
            if parts:
                data["parts"] = described(parts, analysis.terms)
                values, constants = part_numbers(parts, analysis.terms, self._kept)
                more.add("part_values", values)
                more.add("part_constants", constants)
        agreement = agreement_numbers(analysis.terms)
        if agreement is not None:
            more.add(NAMES, agreement)
        if self._kept.inputs and operands.target is not None and not analysis.main.is_masked:
            padding = padding_numbers(self._kept.inputs, operands)
            if padding is not None:
                more.add(PADDING, padding)
        self._tell(series, data, operands, value, "train", more)

    # -- without gradient ---------------------------------------------------------------------

    @contained
    def no_grad_loss(
        self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> bool:
        """A loss function of torch was called in a pass without gradient; False: it was no loss."""
        if not isinstance(result, torch.Tensor) or not args:
            return False
        series = self.lines.evaluated(line_of_script(), function)
        with quiet():
            value = _value(result if result.dim() == 0 else unexpanded(result).float().mean(), None)
            if value is not None:
                samples, summed = samples_of_call(function, args, kwargs, result)
                self._count_held(None)
                self._held = series.name, Batch(value, samples, None, summed)
                if not (summed and self._watching.clock.calls.depth):
                    self._count_held(None)
            if self._new_pass(series):
                made, operands = operands_of_call(function, args, kwargs)
                self._tell(series, made, operands, value, "eval")
        return True

    @contained
    def _count_held(self, output: Any) -> None:
        """Counts the loss that waits for what its model returns.

        A model that adds losses up may divide the sum after the call, by a number of its own, and
        return it as `loss`: that is its loss then.
        """
        if self._held is not None:
            (name, batch), self._held = self._held, None
            returned = returned_loss(output)
            value = None if returned is None else _value(returned, None)
            if value is not None:
                batch = batch._replace(value=value, summed=False)
            self._values.evaluated(name, batch)

    def _new_pass(self, series: Series) -> bool:
        """Whether a pass begins that gets a record: the first ones do, later on ever fewer."""
        if series.last_record == self._watching.step:
            return False
        series.last_record = self._watching.step
        return series.passes.takes()

    # -- both ---------------------------------------------------------------------------------

    def _tell(
        self,
        series: Series,
        data: dict[str, Any],
        operands: Operands,
        value: torch.Tensor | float | None,
        phase: str,
        more: Numbers | None = None,
    ) -> None:
        where = series.where
        data |= {"source": f"{where.file}:{where.line}", "function": where.function}
        data["value"] = value if isinstance(value, float) else None
        data |= shapes(operands)
        numbers = numbers_of(operands)
        if more is not None:
            numbers.extend(more)
        if isinstance(value, torch.Tensor):
            numbers.add(("value",), value.reshape(1))
        watching, name = self._watching, series.name
        if not numbers:
            watching.loss_record(name, data, phase)
            return
        layout = numbers.layout()

        def done(values: list[float]) -> None:
            watching.loss_record(name, _merged(data, unpacked(values, layout)), phase)

        self._transfers.put(numbers.packed(), done)

    def end_step(self, step: int) -> None:
        """A step has ended: what has arrived from a device by now is told."""
        self._let_go()
        if self._transfers.under_way:
            self._poll()

    @contained
    def _let_go(self) -> None:
        self._kept.clear()

    @contained
    def _poll(self) -> None:
        self._transfers.poll()

    @contained
    def end_window(self) -> None:
        """A window ends, and devices are waited for anyway."""
        self._transfers.fetch()

    @contained
    def close(self) -> None:
        """Watching ends: waits for what is still on its way."""
        self._called_from.turn_off()
        self._transfers.flush()

    def turn_off(self) -> None:
        """After an error: no loss is recorded any more."""
        self.off = True
        self._called_from.turn_off()
        self.unmarked = None
        self._kept = Kept()
        self._transfers = Transfers()


def _value(root: torch.Tensor, scale: torch.Tensor | float | None) -> torch.Tensor | float | None:
    """The value of a loss without the factor of a scaler; a tensor where it is on a device."""
    if scale is None and type(root) is _Tensor and root.is_cpu and not root.dim():
        number: object = root.item()  # as nearly always
        if type(number) is float:
            return number
        return float(number) if isinstance(number, int) else None
    if root.dim() or root.is_complex() or root.is_meta:
        return None
    if is_shared(root):
        held = local_part(root.detach())
        if held is None:  # the loss is a sum over ranks, which only a collective would tell
            return None
        root = held
    if root.is_cpu:
        number = root.item()
        return number if scale is None else number / float(scale)
    value = root.detach()
    return value if scale is None else value / scale


def _number(scale: torch.Tensor | float | None) -> float | None:
    """A loss scaler's factor, where reading it does not wait for a device."""
    if isinstance(scale, torch.Tensor):
        return scale.item() if scale.device.type == "cpu" else None
    return scale


def _without_nodes(analysis: Analysis) -> Analysis:
    return replace(analysis, main=Term(None), terms=())


def _merged(data: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
    """Two levels of plain data made one."""
    whole = dict(data)
    for name, value in numbers.items():
        before = whole.get(name)
        whole[name] = (
            before | value if isinstance(before, dict) and isinstance(value, dict) else value
        )
    return whole
