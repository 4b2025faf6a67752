"""One training step, run again on a copy as often as an experiment wants.

    rehearsal.run().loss                         # what the script had, bit for bit
    rehearsal.run(changed).prediction            # the same step with other inputs
    rehearsal.run(training=False, outputs_only=True).output

The copy is of the model as it was before the step's forward, without hooks and uncompiled. Every
run begins with the same weights, buffers and random states, so dropout and sampling are the same
each time, and what differs between two runs comes from what was changed. Nothing of the original,
of the process and of the inputs is changed (`restoring`); a forward that prints, opens files or
starts threads is stopped before it does (`aside`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.examining.aside import ran_aside
from nethook.examining.batch_facts import BatchFacts, facts_of
from nethook.examining.copying import copy_of
from nethook.examining.limits import Deadline
from nethook.examining.loss_calls import LossCall, arguments_of, is_loss
from nethook.examining.optimizing import OptimizerSettings
from nethook.examining.passage import Passage, TargetOrigin, Told
from nethook.examining.refusals import NotReplayableError, OutOfTimeError
from nethook.hooks.ops.calls import EveryCall, Seen
from nethook.hooks.ops.mode_stack import alone
from nethook.hooks.process.source_line import line_of_script
from nethook.hooks.stack import raised_by_signal
from nethook.restoring.copies import own_inputs, own_objects
from nethook.restoring.mixed_precision import autocast_as
from nethook.restoring.python_state import every_module
from nethook.restoring.randomness import seed_everything
from nethook.restoring.unchanged import unchanged
from nethook.restoring.undo import Undo


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """What one run has given.

    Attributes:
        output: what the model returned.
        prediction, target: what went into the main loss function; None where none is known.
        loss: the number that `backward` runs on; None where only outputs were asked for.
        calls: every call of a loss function, inside the model and after it.
    """

    output: Any
    prediction: torch.Tensor | None = None
    target: torch.Tensor | None = None
    loss: torch.Tensor | None = None
    calls: tuple[LossCall, ...] = ()

    @property
    def main(self) -> LossCall | None:
        """The call that `prediction` and `target` are of: the one with the largest prediction."""
        return main_call(self.calls)


def main_call(calls: tuple[LossCall, ...]) -> LossCall | None:
    """Of several losses, the first of those with the largest prediction."""
    known = [call for call in calls if call.prediction is not None and call.target is not None]
    known = known or [call for call in calls if call.prediction is not None]
    return max(known, key=_size) if known else None


def _size(call: LossCall) -> int:
    return 0 if call.prediction is None else call.prediction.numel()


@dataclass(slots=True, eq=False)
class Material:
    """What a rehearsal is made of. Whoever watches the script collects it.

    Attributes:
        model: a copy, of before the forward.
        inputs: copies of its arguments.
        states: puts back the random states of before the forward.
        autocast: device -> type of mixed precision, where that was on.
        output: what the script's own run returned, detached copies; None where it is not known.
        loss: what the script's backward ran on, a copy.
        passage: from the output to the loss; None where that was not recorded.
        no_passage: why not.
        history: the batches so far.
        seconds: that the script's own forward has taken, as far as is known.
        optimizers: settings of those that hold parameters of the model.
    """

    model: nn.Module
    inputs: Inputs
    states: Undo
    autocast: Mapping[str, str] = field(default_factory=dict)
    output: Any = None
    loss: torch.Tensor | None = None
    passage: Passage | None = None
    no_passage: str = "the operations between output and loss were not recorded"
    history: BatchFacts | None = None
    seconds: float = 0.0
    optimizers: tuple[OptimizerSettings, ...] = ()


class Rehearsal:
    """One training step that can be run again.

    Attributes:
        model: a copy, uncompiled, in the modes that it was in.
        inputs: the kept batch. What is written to it is lost: every run has its own copy.
        recorded: what the script's own run gave, detached; with the calls of loss functions.
        targets: where each target of the passage comes from.
        history: the batches so far.
        optimizers: settings of those that hold parameters of the model.
        passage: the operations from output to loss; None where they were not recorded.
        replayable: whether unchanged data gives the recorded loss bit for bit.
        why_not: why it does not, in words.
        repeats: whether unchanged data gives the recorded output bit for bit.
        deadline: a run that might end later is refused.
        notes: what experiments have found out and others may use.
    """

    def __init__(self, material: Material, deadline: Deadline | None = None) -> None:
        self.model = material.model
        self.inputs = material.inputs
        self.history = material.history or facts_of(material.inputs)
        self.optimizers = material.optimizers
        self.passage = material.passage
        self.deadline = deadline
        self.notes: dict[str, Any] = {}
        self.replayable = False
        self.repeats = False
        self.why_not = material.no_passage if material.passage is None else ""
        self.longest = material.seconds
        """Seconds of the longest run so far."""
        self.recorded = Ran(material.output, loss=material.loss)
        self._material = material
        self._parameters: dict[str, torch.Tensor] = dict(material.model.named_parameters())
        self._needs_grad = False

    @property
    def targets(self) -> tuple[TargetOrigin, ...]:
        """Where each target of the passage comes from."""
        return () if self.passage is None else self.passage.targets

    def check(self) -> None:
        """Runs the step unchanged, and compares: after this `replayable` and `repeats` are known.

        Raises:
            NotReplayableError: the model cannot be run aside at all.
        """
        ran = self._first_run(grad=False)
        if not self._is_same(ran):
            # Some modules take another way where no gradient is wanted.
            self._needs_grad = True
            ran = self._first_run(grad=False)
            if not self._is_same(ran):
                self._needs_grad = False
        recorded: Material | Ran = self._material
        if recorded.output is None:  # of weights that the script has not run with: twice by itself
            recorded = self._first_run(grad=False)
        self.repeats = same_bits(ran.output, recorded.output)
        if not self.repeats:
            self.why_not = "the same inputs and random states do not give the same output again"
        elif ran.loss is not None and recorded.loss is not None:
            self.replayable = same_bits(ran.loss, recorded.loss)
            if not self.replayable:
                self.why_not = "the recorded operations do not give the same loss again"
        loss = ran.loss if recorded.loss is None else recorded.loss
        self.recorded = Ran(recorded.output, ran.prediction, ran.target, loss, ran.calls)

    def _first_run(self, *, grad: bool) -> Ran:
        if self.passage is None:
            return self.run(grad=grad, outputs_only=True)
        try:
            return self.run(grad=grad)
        except OutOfTimeError:
            raise
        except NotReplayableError as error:
            self.why_not = self.why_not or str(error)
            return self.run(grad=grad, outputs_only=True)

    def _is_same(self, ran: Ran) -> bool:
        recorded = self._material
        if recorded.output is not None and not same_bits(ran.output, recorded.output):
            return False
        return ran.loss is None or recorded.loss is None or same_bits(ran.loss, recorded.loss)

    def run(
        self,
        inputs: Inputs | None = None,
        *,
        training: bool | None = None,
        grad: bool = False,
        outputs_only: bool = False,
        seed: int | None = None,
        seen: Seen | None = None,
        answers: Callable[[Any], Any] | None = None,
        replayed: Told | None = None,
    ) -> Ran:
        """The step once more.

        Arguments:
            inputs: others than the kept ones, of the same form.
            training: the mode of all modules; None leaves each as it was.
            grad: whether to build a graph. Read gradients with `torch.autograd.grad`: nothing is
                to be added to parameters.
            outputs_only: the model alone, without what comes after it.
            seed: the model begins with the random states of this seed, and not with those that
                it had in the script.
            seen: told of every function of torch that the model calls (`EveryCall`). It opens no
                file: that would be taken for the model's doing.
            answers: makes of the model's output what goes on to the loss in its place.
            replayed: told of every operation after the model, up to the loss.

        Raises:
            NotReplayableError: this cannot be run; the message says why.
            OutOfTimeError: there is no time left for it.
        """
        began = time.thread_time()
        if self.deadline is not None and self.deadline.left() < self.longest:
            raise OutOfTimeError("there was no time left for it")
        given = own_objects(own_inputs(self.inputs if inputs is None else inputs))
        if training is not None:
            given = _in_mode(given, training)
        # Backward needs what a forward has written to its buffers, which is put back after it: a
        # run with a graph has buffers of its own.
        model = copy_of(self.model, share_parameters=True) if grad else self.model
        try:
            with self._apart(grad=grad or self._needs_grad):
                if training is not None:
                    for module in every_module(model):
                        module.training = training
                ran = self._run(
                    model, given, grad=grad, outputs_only=outputs_only, seed=seed, seen=seen,
                    answers=answers, told=replayed,
                )  # fmt: skip
        finally:
            self.longest = max(self.longest, time.thread_time() - began)
        return ran if grad or not self._needs_grad else _detached(ran)

    def twin(self) -> Rehearsal:
        """The same step on a copy of its own, for experiments that change weights."""
        material = self._material
        own = Rehearsal(
            Material(
                copy_of(self.model), material.inputs, material.states, material.autocast,
                material.output, material.loss, material.passage, material.no_passage, self.history,
                optimizers=self.optimizers,
            ),
            self.deadline,
        )  # fmt: skip
        own.replayable, own.repeats, own.why_not = self.replayable, self.repeats, self.why_not
        own.recorded, own.longest = self.recorded, self.longest
        own._needs_grad = self._needs_grad
        return own

    # -- inside a run -----------------------------------------------------------------------------

    @contextmanager
    def _apart(self, *, grad: bool) -> Iterator[None]:
        with (
            unchanged(self.model),
            alone(),
            torch.inference_mode(False),
            torch.set_grad_enabled(grad),
            ran_aside(self.model, self.deadline),
        ):
            yield

    def _run(
        self,
        model: nn.Module,
        given: Inputs,
        *,
        grad: bool,
        outputs_only: bool,
        seed: int | None,
        seen: Seen | None,
        answers: Callable[[Any], Any] | None,
        told: Told | None,
    ) -> Ran:
        inside: list[LossCall] = []
        if seed is None:
            self._material.states()
        else:
            seed_everything(seed)
        noting = EveryCall(_note_losses(inside, seen, grad=grad))
        try:
            noting.put_on()
            with autocast_as(self._material.autocast):
                output = given.call(model)
        except Exception as error:
            if raised_by_signal(error):
                raise
            raise NotReplayableError(
                f"the model fails on it ({type(error).__name__}: {_short(error)})"
            ) from error
        finally:
            noting.remove()
        if not grad:
            output = map_tensors(torch.Tensor.detach, output)
        if outputs_only or self.passage is None:
            return _ran(output, None, tuple(inside))
        given_on = output if answers is None else answers(output)
        given_on = map_tensors(torch.clone, given_on) if self.passage.writes_output else given_on
        replayed = self.passage.replay(given_on, self._parameters, grad=grad, told=told)
        return _ran(output, replayed.loss, (*inside, *replayed.calls))


def _in_mode(given: Inputs, training: bool) -> Inputs:
    """The arguments of a call in this mode: Keras and others pass it as an argument, too."""
    if type(given.kwargs.get("training")) is not bool:
        return given
    return Inputs(given.args, {**given.kwargs, "training": training})


def _ran(output: Any, loss: torch.Tensor | None, calls: tuple[LossCall, ...]) -> Ran:
    main = main_call(calls)
    if main is None:
        return Ran(output, None, None, loss, calls)
    return Ran(output, main.prediction, main.target, loss, calls)


def _detached(ran: Ran) -> Ran:
    calls = tuple(
        LossCall(
            call.kind, _plain(call.prediction), _plain(call.target), call.options,
            call.inside_model, call.line, call.op,
        )
        for call in ran.calls
    )  # fmt: skip
    return _ran(map_tensors(torch.Tensor.detach, ran.output), _plain(ran.loss), calls)


def _plain(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach()


def _note_losses(calls: list[LossCall], also: Seen | None, *, grad: bool) -> Callable[..., Any]:
    """Notes the loss functions that a model calls by itself."""

    def seen(
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        run: Callable[[], Any],
    ) -> Any:
        if is_loss(function):
            told = arguments_of(function, args, kwargs)
            prediction, target = (
                (value if grad else value.detach()) if isinstance(value, torch.Tensor) else None
                for value in (told.prediction, told.target)
            )
            line = str(line_of_script(or_library=True))
            calls.append(LossCall(told.kind, prediction, target, told.options, True, line))
        return run() if also is None else also(function, args, kwargs, run)

    return seen


def same_bits(one: Any, other: Any) -> bool:
    """Whether two nested values hold the same tensors, bit for bit."""
    mine, theirs = tensors(one), tensors(other)
    return len(mine) == len(theirs) and all(
        _same(a, b) for (_, a), (_, b) in zip(mine, theirs, strict=True)
    )


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype is not other.dtype or one.layout is not other.layout:
        return False
    with torch.no_grad():
        if one.layout is not torch.strided:
            one, other = one.to_dense(), other.to_dense()
        if one.is_complex():
            one, other = (
                torch.view_as_real(one.resolve_conj()),
                torch.view_as_real(other.resolve_conj()),
            )
        if one.is_floating_point():
            # NaN is not equal to itself, and 0.0 equals -0.0.
            bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
            kind = bits[one.element_size()]
            one, other = one.contiguous().view(kind), other.contiguous().view(kind)
        return torch.equal(one, other.to(one.device))


def _short(error: Exception) -> str:
    line = str(error).strip().splitlines()
    return line[0][:120] if line else ""
