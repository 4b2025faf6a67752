"""When a training is examined: at its third backward pass, when something new appears, at the end.

A step is examined that ends in a line of the script which has called `backward` twice before. Its
call of the model is kept (`examining.keeping`), and the experiments run when the step has ended and
its memory is free again. A line that appears later has its turn then. When every line has had it,
nothing is called any more but the end of a window, at which somebody looks whether there is
something new.

At the end of the run the same batch is run once more with the trained weights, for the experiments
that want these, and for those that had no time before.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.addresses.wrappers import unwrap
from nethook.hooks.hook import Owner
from nethook.hooks.process.discovery import undiscovered
from nethook.hooks.process.loaders import LoaderBatches
from nethook.hooks.process.source_line import line_of_script
from nethook.stats.memory import bytes_held
from nethook.torch_private import storage_id
from nethook.watching.costs import OTHER
from nethook.watching.examinations.batches import SeenBatches
from nethook.watching.examinations.turns import FIRST, MOST_EXAMS, OfLine, Turns
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder, Recorders

if TYPE_CHECKING:
    from nethook.examining.experiment import Experiment
    from nethook.examining.keeping import KeptCall
    from nethook.examining.limits import Deadline
    from nethook.examining.rehearsal import Material

MOST_HELD: Final = 64 << 20
"""Bytes of a batch that are held until the end of the run."""
COPIED: Final = 1 << 30
"""Bytes of a model that are copied in a second, at least."""

_WHILE_AWAKE: Final = ("call_begins", "call_ends", "before_backward", "before_step", "end_step")
_KEY: Final = ("experiment", "model", "loss")


@dataclass(slots=True)
class _Chosen:
    """A step that is to be examined: as it was, and at the end of the run with other weights."""

    material: Material
    module: weakref.ref[nn.Module]
    modes: list[bool]
    model: str
    line: str
    held: bool  # whether it is small enough to be held until the end
    experiments: tuple[Experiment, ...] = ()  # that are left for the end


class Examinations(FailsAlone, Recorder):
    """Chooses the steps that are examined, and keeps what comes of it in the run.

    Arguments:
        journal: where results go.
        recorders: all of the watch: this one rests among them.
        new: how many lines have called `backward`, and how many optimizers there are, so far.
        optimizers: those that hold parameters of the models.
        owner: of the hook on data loaders.
    """

    part = "the examinations"

    def __init__(
        self,
        journal: Journal,
        recorders: Recorders,
        new: Callable[[], tuple[int, int]],
        optimizers: Callable[[], Iterable[torch.optim.Optimizer]],
        owner: Owner,
    ) -> None:
        self._watching: Journal = journal
        self._recorders = recorders
        self._new = new
        self._optimizers = optimizers
        self._known = (0, 0)
        self._turns = Turns()
        self._batches = SeenBatches()
        self._kept: KeptCall | None = None
        self._keeping: tuple[str, weakref.ref[nn.Module]] | None = None  # the call that is kept
        self._leftover: KeptCall | None = None  # one whose mode torch will put back once more
        self._began = self._forward = 0.0
        self._ready: _Chosen | None = None
        self._later: list[_Chosen] = []
        self._awake = True
        self._loading = 0.0
        self._worked = 0.0  # seconds of this thread, which the limit is of
        self.loaders = LoaderBatches(owner, self._batch_loaded)
        self.loaders.put_on()
        self.results: list[dict[str, Any]] = []
        """Results so far, as plain data."""
        self.reasons: list[str] = []
        """Why something was not examined."""
        self.seconds = 0.0
        """That all of it has taken."""

    # -- what the watch tells ---------------------------------------------------------------------

    @contained
    def call_begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """A watched model is called."""
        with self._timed():
            self._drop()
            if self._watching.clock.calls.training:
                self._turns.calls += 1
                self._batches.called(args, kwargs)
                if self._ready is None and self._turns.wanted:
                    self._keep(model, module, args, kwargs)
        self._began = time.perf_counter()

    @contained
    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """It has returned."""
        self._forward = time.perf_counter() - self._began
        kept, keeping = self._kept, self._keeping
        if kept is not None and keeping is not None and keeping[1]() is module:
            with self._timed():
                kept.returned(output)

    @contained
    def before_backward(self, roots: Sequence[torch.Tensor]) -> None:
        """A backward pass begins: of which line?"""
        with self._timed():
            where, calls = line_of_script(), self._turns.calls
            line = self._turns.begins((where.file, where.line), str(where))
            if self._kept is None:
                return
            if line.done or line.passes <= FIRST or self._ready is not None:
                line.tries += 1
                self._drop()
            else:
                self._choose(line, calls, roots)

    @contained
    def before_step(self, parameters: Sequence[Any]) -> None:
        """An optimizer is about to step: no function of torch is under way any more."""
        self._sweep()

    @contained
    def end_step(self, step: int) -> None:
        """A step has ended: its memory is free, and it may be examined."""
        self._sweep()
        if self._ready is not None:
            with self._timed():
                self._examine_ready()
            self._write()
        if self._awake and self._turns.over:
            self._rest()

    @contained
    def end_window(self) -> None:
        """A window ends: is there something new?"""
        (lines, optimizers), before = self._new(), self._known
        self._known = (lines, optimizers)
        if not self._awake and self._known != before and self._turns.exams < MOST_EXAMS:
            self._turns.again(all_lines=optimizers > before[1])
            self._wake()

    @contained
    def close(self) -> None:
        """Watching ends: what wants the trained weights is done now."""
        self._drop()
        if self._ready is not None:
            with self._timed():
                self._examine_ready()
        for chosen in self._later:
            with self._timed():
                self._examine_again(chosen)
        if self._turns.exams == 0 and not self.reasons:
            self._not_examined(self._turns.why_never)
        self._write()
        self._let_go()

    def turn_off(self) -> None:
        """After an error: nothing is examined any more, and nothing held."""
        self.off = True
        self._let_go()

    def remove(self) -> None:
        """The hooks of the watch are taken off: a mode that torch has put back goes with them."""
        with suppress(Exception):  # whatever it is, the others are to be taken off, too
            self._sweep()
        self.loaders.remove()

    def _batch_loaded(self, sampler: Any, collated: bool, batch: Any) -> None:
        """A data loader has handed a batch out."""
        if self.off or not self._watching.guard.alive:
            return
        try:
            self._batches.loaded(sampler, collated)
        except Exception as error:
            self.failed(error)

    # -- keeping a call ---------------------------------------------------------------------------

    def _keep(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._load()
        from nethook.examining.copying import model_bytes
        from nethook.examining.keeping import KeptCall
        from nethook.examining.limits import why_too_large
        from nethook.examining.refusals import NotReplayableError

        self._turns.copies += 1
        inside = unwrap(module)
        size = model_bytes(inside) + _bytes_of((args, kwargs))
        reason = why_too_large(size, _device(inside)) or self._too_slow(size)
        if not reason:
            try:
                with self._apart():
                    self._kept = KeptCall(module, args, kwargs)
            except NotReplayableError as error:
                reason = str(error)
        if reason:
            self._not_examined(reason)
            if (line := self._turns.next) is not None:
                line.done = True
            return
        self._keeping = (model, weakref.ref(module))

    def _too_slow(self, size: int) -> str:
        """Why there is no time for a copy and a run of it."""
        left = self._seconds_left()
        wanted = 2 * self._forward + size / COPIED
        if wanted <= left:
            return ""
        return f"one pass takes about {wanted:.1f} s, and {left:.1f} s may be used"

    def _choose(self, line: OfLine, calls: int, roots: Sequence[torch.Tensor]) -> None:
        """The step that was kept is the one to examine, if there is room for it."""
        from nethook.examining.activations import bytes_saved
        from nethook.examining.limits import why_too_large
        from nethook.examining.optimizing import settings_of
        from nethook.restoring.python_state import every_module

        kept, keeping = self._kept, self._keeping
        assert kept is not None
        assert keeping is not None
        line.done = True
        self._turns.exams += 1
        self._took(kept.recording_seconds)
        material = kept.backward(roots, self._batches.facts(kept.inputs, calls))
        material.seconds = self._forward
        self._leftover, self._kept, self._keeping = kept, None, None
        model, reference = keeping
        module = reference()
        if module is None:
            return
        material.optimizers = settings_of(self._optimizers(), unwrap(module))
        strided = [one for one in module.parameters() if one.layout is torch.strided]
        weights = {storage_id(parameter.untyped_storage()) for parameter in strided}
        # A run with a graph, and another beside it.
        reason = why_too_large(2 * bytes_saved(roots, weights), _device(module))
        if reason:
            self._not_examined(reason)
            return
        held = _bytes_of((material.inputs.args, dict(material.inputs.kwargs)))
        held += material.passage.bytes if material.passage is not None else 0
        modes = [part.training for part in every_module(material.model)]
        self._ready = _Chosen(
            material, reference, modes, model, line.name, held=held <= MOST_HELD
        )  # fmt: skip

    # -- examining --------------------------------------------------------------------------------

    def _examine_ready(self) -> None:
        from nethook.examining.examine import every_experiment, examine, wants_trained
        from nethook.examining.rehearsal import Rehearsal

        chosen, self._ready = self._ready, None
        assert chosen is not None
        experiments = every_experiment()
        early = [one for one in experiments if not wants_trained(one)]
        with self._apart():
            examined = examine(Rehearsal(chosen.material), early, deadline=self._deadline())
        self._note(examined.results, chosen)
        late = [one for one in experiments if wants_trained(one)]
        if examined.reason and not examined.late:
            self._not_examined(examined.reason)
        elif (late or examined.late) and chosen.held:
            later = replace(chosen.material, model=nn.Module(), output=None, loss=None)
            left = (*late, *examined.late)
            self._later.append(replace(chosen, material=later, experiments=left))
        elif examined.reason:
            self._not_examined(examined.reason)

    def _examine_again(self, chosen: _Chosen) -> None:
        """With the weights that the training has ended with."""
        from nethook.examining.copying import copy_of, model_bytes, why_not_copied
        from nethook.examining.examine import examine
        from nethook.examining.limits import why_too_large
        from nethook.examining.refusals import NotReplayableError
        from nethook.examining.rehearsal import Rehearsal
        from nethook.restoring.python_state import every_module

        module = chosen.module()
        if module is None:
            return
        inside = unwrap(module)
        reason = why_not_copied(inside) or why_too_large(model_bytes(inside), _device(inside))
        try:
            if reason:
                raise NotReplayableError(reason)
            with self._apart():
                model = copy_of(inside)
                for part, training in zip(every_module(model), chosen.modes, strict=False):
                    part.training = training
                rehearsal = Rehearsal(replace(chosen.material, model=model))
                examined = examine(rehearsal, chosen.experiments, deadline=self._deadline())
            self._note(examined.results, chosen)
            self._not_examined(examined.reason)
        except NotReplayableError as error:
            self._not_examined(str(error))

    @contextmanager
    def _apart(self) -> Iterator[None]:
        with self._watching.guard.paused(), undiscovered():
            yield

    def _note(self, results: Sequence[Any], chosen: _Chosen) -> None:
        for result in results:
            data = result.to_dict()
            data |= {"model": chosen.model, "loss": chosen.line, "step": self._watching.step}
            key = [data[name] for name in _KEY]
            known = [other for other in self.results if [other[name] for name in _KEY] == key]
            # What had no time before, and has now, is told once.
            if not known:
                self.results.append(data)
            elif result.outcome != "not applicable" or known[0]["outcome"] == "not applicable":
                self.results[self.results.index(known[0])] = data

    def _not_examined(self, reason: str) -> None:
        if reason and reason not in self.reasons:
            self.reasons.append(reason)

    def _write(self) -> None:
        self._watching.writer.info(
            examined=self.results,
            examination={
                "seconds": self.seconds,
                "steps": self._turns.exams,
                "not_examined": self.reasons,
            },
        )

    # -- time -------------------------------------------------------------------------------------

    def _seconds_left(self) -> float:
        from nethook.examining.limits import seconds_left

        return seconds_left(self._watching.schedule.budget.elapsed, self._worked)

    def _deadline(self) -> Deadline:
        from nethook.examining.limits import MOST, Deadline

        return Deadline(self._seconds_left(), max(0.0, MOST - (self.seconds - self._loading)))

    def _load(self) -> None:
        """Imports what examines, when it is first needed; that is no part of the limit."""
        if self._loading == 0.0:
            began, worked = time.perf_counter(), time.thread_time()
            from nethook.examining import activations, examine, keeping  # noqa: F401

            examine.every_experiment()
            self._loading = time.perf_counter() - began
            self._worked -= time.thread_time() - worked

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """A block whose time is neither training's nor watching's: it has a number of its own."""
        began, worked = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self._worked += time.thread_time() - worked
            seconds = time.perf_counter() - began
            self._took(seconds)
            # The hook adds all of its time to what watching has cost.
            self._watching.schedule.spent[OTHER] -= seconds

    def _took(self, seconds: float) -> None:
        self.seconds += seconds
        self._watching.schedule.budget.leave_out(seconds)

    # -- resting ----------------------------------------------------------------------------------

    def _rest(self) -> None:
        self._awake = False
        self._recorders.rest(self, _WHILE_AWAKE)
        self.loaders.remove()
        self._batches = SeenBatches()

    def _wake(self) -> None:
        self._awake = True
        self._recorders.wake(self, _WHILE_AWAKE)
        self.loaders.put_on()

    def _drop(self) -> None:
        """The call that was kept is not the last one before a loss, or there was none."""
        if self._kept is not None:
            self._took(self._kept.recording_seconds)
            if not self._kept.drop():
                self._leftover = self._kept
        self._kept = self._keeping = None
        self._sweep()

    def _sweep(self) -> None:
        if self._leftover is not None and self._leftover.drop():
            self._leftover = None

    def _let_go(self) -> None:
        for kept in (self._kept, self._leftover):
            if kept is not None:
                self._leftover = None if kept.drop() else kept
        self._kept = self._keeping = self._ready = None
        self._later = []
        self._batches = SeenBatches()
        self.loaders.remove()


def _bytes_of(value: object) -> int:
    return sum(bytes_held(tensor) for _, tensor in tensors(value))


def _device(model: nn.Module) -> torch.device | None:
    first = next(model.parameters(), None)
    return None if first is None else first.device
