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

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from nethook.addresses.wrappers import unwrap
from nethook.hooks.hook import Owner
from nethook.hooks.process.discovery import undiscovered
from nethook.hooks.process.loaders import LoaderBatches
from nethook.hooks.process.source_line import line_of_script
from nethook.watching.examinations.batches import SeenBatches
from nethook.watching.examinations.chosen import (
    Chosen,
    ChosenSteps,
    bytes_of,
    device_of,
    why_no_room,
)
from nethook.watching.examinations.keeper import Keeper
from nethook.watching.examinations.time_left import TimeLeft
from nethook.watching.examinations.turns import FIRST, MOST_EXAMS, OfLine, Turns
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder, Recorders

if TYPE_CHECKING:
    from nethook.addresses.inputs import Inputs
    from nethook.examining.batch_facts import BatchFacts

_WHILE_AWAKE: Final = ("call_begins", "call_ends", "before_backward", "before_step", "end_step")
_KEY: Final = ("experiment", "model", "loss")


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
        self._time = TimeLeft(journal)
        self._keeper = Keeper(self._time.took)
        self._chosen = ChosenSteps()
        self._awake = True
        self.loaders = LoaderBatches(owner, self._batch_loaded)
        self.loaders.put_on()
        self.results: list[dict[str, Any]] = []
        """Results so far, as plain data."""
        self.reasons: list[str] = []
        """Why something was not examined."""

    # -- what the watch tells ---------------------------------------------------------------------

    @contained
    def call_begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """A watched model is called."""
        with self._time.timed():
            self._keeper.drop()
            if self._watching.clock.calls.training:
                self._turns.calls += 1
                self._batches.called(args, kwargs)
                if self._chosen.ready is None and self._turns.wanted:
                    self._keep(model, module, args, kwargs)
        self._keeper.call_begins()

    @contained
    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """It has returned."""
        if self._keeper.call_ends(module):
            with self._time.timed():
                self._keeper.returned(output)

    @contained
    def before_backward(self, roots: Sequence[torch.Tensor]) -> None:
        """A backward pass begins: of which line?"""
        with self._time.timed():
            where, calls = line_of_script(), self._turns.calls
            line = self._turns.begins((where.file, where.line), str(where))
            if not self._keeper.holds:
                return
            if line.done or line.passes <= FIRST or self._chosen.ready is not None:
                line.tries += 1
                self._keeper.drop()
            else:
                self._choose(line, calls, roots)

    @contained
    def before_step(self, parameters: Sequence[Any]) -> None:
        """An optimizer is about to step: no function of torch is under way any more."""
        self._keeper.sweep()

    @contained
    def end_step(self, step: int) -> None:
        """A step has ended: its memory is free, and it may be examined."""
        self._keeper.sweep()
        if self._chosen.ready is not None:
            with self._time.timed():
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
        self._keeper.drop()
        if self._chosen.ready is not None:
            with self._time.timed():
                self._examine_ready()
        for chosen in self._chosen.later:
            with self._time.timed():
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
            self._keeper.sweep()
        self.loaders.remove()

    def _batch_loaded(self, sampler: Any, dataset: Any, collated: bool, batch: Any) -> None:
        """A data loader has handed a batch out."""
        if self.off or not self._watching.guard.alive:
            return
        try:
            self._batches.loaded(sampler, collated, dataset)
        except Exception as error:
            self.failed(error)

    # -- keeping a call ---------------------------------------------------------------------------

    def _keep(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._time.load()
        from nethook.examining.copying import model_bytes
        from nethook.examining.limits import why_too_large
        from nethook.examining.refusals import NotReplayableError

        self._turns.copies += 1
        inside = unwrap(module)
        size = model_bytes(inside) + bytes_of((args, kwargs))
        reason = why_too_large(size, device_of(inside))
        reason = reason or self._time.why_too_slow(size, self._keeper.forward)
        if not reason:
            try:
                with self._apart():
                    self._keeper.keep(model, module, args, kwargs)
            except NotReplayableError as error:
                reason = str(error)
        if reason:
            self._not_examined(reason)
            if (line := self._turns.next) is not None:
                line.done = True

    def _facts(self, inputs: Inputs, calls: int) -> BatchFacts:
        """Of the batch that a model was called with last."""
        facts = self._batches.facts(inputs, calls)
        return replace(facts, repeats=None) if self._watching.one_batch else facts

    def _choose(self, line: OfLine, calls: int, roots: Sequence[torch.Tensor]) -> None:
        """The step that was kept is the one to examine, if there is room for it."""
        from nethook.examining.optimizing import settings_of

        line.done = True
        self._turns.exams += 1
        taken = self._keeper.take(roots, lambda inputs: self._facts(inputs, calls))
        module = None if taken is None else taken.module()
        if taken is None or module is None:
            return
        taken.material.optimizers = settings_of(self._optimizers(), unwrap(module))
        reason = why_no_room(module, roots)
        if reason:
            self._not_examined(reason)
        else:
            self._chosen.add(taken, line.name)

    # -- examining --------------------------------------------------------------------------------

    def _examine_ready(self) -> None:
        from nethook.examining.examine import every_experiment, examine, wants_trained
        from nethook.examining.rehearsal import Rehearsal

        chosen = self._chosen.take()
        assert chosen is not None
        experiments = every_experiment()
        early = [one for one in experiments if not wants_trained(one)]
        with self._apart():
            examined = examine(Rehearsal(chosen.material), early, deadline=self._time.deadline())
        self._note(examined.results, chosen)
        late = [one for one in experiments if wants_trained(one)]
        if examined.reason and not examined.late:
            self._not_examined(examined.reason)
        elif (late or examined.late) and chosen.held:
            self._chosen.keep_for_the_end(chosen, (*late, *examined.late))
        elif examined.reason:
            self._not_examined(examined.reason)

    def _examine_again(self, chosen: Chosen) -> None:
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
        reason = why_not_copied(inside) or why_too_large(model_bytes(inside), device_of(inside))
        try:
            if reason:
                raise NotReplayableError(reason)
            with self._apart():
                model = copy_of(inside)
                for part, training in zip(every_module(model), chosen.modes, strict=False):
                    part.training = training
                rehearsal = Rehearsal(replace(chosen.material, model=model))
                examined = examine(rehearsal, chosen.experiments, deadline=self._time.deadline())
            self._note(examined.results, chosen)
            self._not_examined(examined.reason)
        except NotReplayableError as error:
            self._not_examined(str(error))

    @contextmanager
    def _apart(self) -> Iterator[None]:
        with self._watching.guard.paused(), undiscovered():
            yield

    def _note(self, results: Sequence[Any], chosen: Chosen) -> None:
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
                "seconds": self._time.seconds,
                "steps": self._turns.exams,
                "not_examined": self.reasons,
            },
        )

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

    def _let_go(self) -> None:
        self._keeper.let_go()
        self._chosen.let_go()
        self._batches = SeenBatches()
        self.loaders.remove()
