"""Following whatever a script trains: models are met at their first call and handed to a watch.

Nobody tells nethook which model is trained. `Newcomers` (a global hook) is on while there may be a
model that is not watched yet, and off otherwise, since it costs something at every call:

    on   at the start; when a module gets a parameter; when an optimizer steps whose parameters are
         not all watched
    off  when everything that an optimizer holds is watched; when looking has cost its share

While it is on, the first call of each module leads to `_judge`: a census of the process (modules
and optimizers among all objects) says which models are trained. They go to the watcher; what was
looked at is remembered in `Met`, so that a second call of the same module costs a look into a
dict. A backward pass through models of which no optimizer holds anything, and which nobody follows,
is enough as well (`_judge_pass`): then they are followed from their second step on.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from nethook.errors import RunFileError
from nethook.hooks.imports import when_imported
from nethook.running.detecting.allowance import Allowance
from nethook.running.detecting.met import Met
from nethook.running.detecting.twins import Twins
from nethook.running.options import RunOptions
from nethook.running.tracebacks import one_line
from nethook.text.numbers import count

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from nethook.hooks.attachment import Attachment
    from nethook.hooks.process.discovery import Discovery

# Models in one run: a script that copies its model a thousand times is followed through these.
_MOST: Final = 16
# Steps of an optimizer after which its parameters count as those of no module that is called.
_PATIENCE: Final = 3


class Watcher(Protocol):
    """What follows models: `nethook.watch`, or a stand-in."""

    def add(self, models: Mapping[str, nn.Module], optimizers: Sequence[Optimizer]) -> None:
        """Follow these as well; `optimizers` are all that are alive."""

    def settle(self, trained: AbstractSet[int]) -> None:
        """End the runs of models that no optimizer holds; `trained` are ids of what one does."""

    def keep(self, **facts: object) -> None:
        """Keep facts in the runs that are open, as plain data."""

    def ended_with(self, error: str, *, interrupted: bool) -> None:
        """The script has ended with an error, in one line; Ctrl-C is one as well."""

    def close(self) -> None:
        """Follow nothing any more."""

    def abandon(self) -> None:
        """Leave everything as it is, in a process that was forked."""

    @property
    def paths(self) -> list[Path]:
        """The run files, the first one first."""

    @property
    def left_alone(self) -> Sequence[Path]:
        """Runs that were there before and were not gone on with."""

    @property
    def notes(self) -> Sequence[str]:
        """What a person should know of them, in sentences."""

    @property
    def problems(self) -> list[str]:
        """What could not be written of the runs that have ended, in sentences."""


class Session:
    """One process of a run. Nothing in here raises into the script.

    Arguments:
        options: what was asked for.
        start: makes the watcher when there is something to follow.
    """

    def __init__(
        self,
        options: RunOptions,
        start: Callable[[RunOptions, Mapping[str, nn.Module], Sequence[Optimizer]], Watcher],
    ) -> None:
        self.options = options
        self.notes: list[str] = []
        """What a person should know at the end, in sentences."""
        self.models: dict[str, str] = {}
        """The name of each model that is followed, and its class."""
        self.watcher: Watcher | None = None
        self.started = time.time()
        self._start = start
        self._pid = os.getpid()
        self._busy = threading.Lock()
        self._newcomers: Discovery | None = None
        self._always: Attachment | None = None
        self._allowance = Allowance()
        self._ended = False
        self._met = Met()
        # Models that wait for a first forward to make their parameters: a class, and one of them.
        self._unmade: dict[int, tuple[str, str]] = {}
        self._twins = Twins()

    def begin(self) -> None:
        """Torch is there: wait for the first call of a module."""
        try:
            from nethook.hooks.attachment import Attachment
            from nethook.hooks.compile.eager import check_hooks_in_graphs
            from nethook.hooks.hook import Owner
            from nethook.hooks.process.discovery import Discovery
            from nethook.hooks.process.export import export_without_hooks
            from nethook.hooks.process.origins import note_origins
            from nethook.torch_private import COMPILER_CALLBACKS

            self._always = Attachment(Owner("nethook run"))
            export_without_hooks(self._always)
            note_origins(self._always)
            # From the start: a watch may begin while its model is being compiled.
            check_hooks_in_graphs(self._always)
            self._newcomers = Discovery(
                "nethook run", called=self._called, passed=self._passed,
                stepped=self._stepped, built=self._built,
            )  # fmt: skip
            self._newcomers.turn_on()
            when_imported(COMPILER_CALLBACKS, self._see_compiling)
            # What is registered stays for ever, and a process may have many sessions.
            os.register_at_fork(after_in_child=_Abandons(self))
        except Exception as error:
            self._give_up(error)

    def end(self, error: str = "", *, interrupted: bool = False) -> None:
        """The script has ended, maybe with an error: close what is open, once."""
        if os.getpid() != self._pid:
            return
        self._take_off()
        for kind, parameter in self._unmade.values():
            self._note(f"Not followed: {kind}; no forward gave its parameter {parameter} a shape.")
        if self.watcher is not None and not self._ended:
            self._ended = True
            try:
                if error:
                    self.watcher.ended_with(error, interrupted=interrupted)
                if twins := self._twins.evaluated():
                    self.watcher.keep(untrained_twins=twins)
                if asked := self._twins.in_training_mode():
                    self.watcher.keep(loaded_twins=asked)
                self.watcher.close()
                self.notes += self.watcher.problems
            except Exception as error:
                self.notes.append(f"The run could not be closed: {one_line(error)}.")

    def abandon(self) -> None:
        """This is a forked child: everything is off, and nothing is written."""
        self._take_off()
        if self.watcher is not None:
            self.watcher.abandon()

    @property
    def mine(self) -> bool:
        """Whether this is the process that the session was made in."""
        return os.getpid() == self._pid

    # What torch calls

    def _called(self, module: nn.Module, args: Any) -> None:
        if self._met.judged(module):
            return
        if args and self._symbolic(args):
            return
        self._judge_alone(module)

    def _symbolic(self, args: tuple[Any, ...]) -> bool:
        from nethook.running.detecting.symbolic import is_symbolic

        try:
            return is_symbolic(args)
        except Exception:  # an argument may object to being looked at
            return False

    def _built(self) -> None:
        """A module got a parameter: there may be a new model soon."""
        if self._newcomers is not None and len(self.models) < _MOST:
            self._met.judge_anew()
            self._allowance.renew_passes()
            self._newcomers.turn_on()

    def _passed(self, roots: list[Tensor]) -> None:
        """A backward pass begins."""
        if not self._allowance.has_passes or self._busy.locked():
            return
        self._allowance.take_pass()
        with self._busy:
            try:
                self._judge_pass(roots)
            except Exception as error:
                self._give_up(error)

    def _stepped(self, optimizer: Optimizer) -> None:
        steps = self._met.steps(optimizer)
        if steps < 0:
            return
        try:
            self._look_at(optimizer, steps)
        except Exception as error:
            self._give_up(error)

    def _see_compiling(self) -> None:
        if self._newcomers is not None:
            self._newcomers.see_compiling(lambda: self._judge_alone(None))

    # Decisions

    def _judge_alone(self, module: nn.Module | None) -> None:
        """Judges, unless another thread does, or this one, further up."""
        if self._busy.locked():
            return
        with self._busy:  # and no `acquire`: an interrupt could come before the `try`
            try:
                self._judge(module)
            except Exception as error:
                self._give_up(error)

    def _judge(self, module: nn.Module | None) -> None:
        """Is a model being trained that is not followed? `module` is what is being called."""
        from torch import is_grad_enabled

        from nethook.addresses.wrappers import unwrap
        from nethook.running.detecting.discover import name_of, take_census, trainees

        assert self._newcomers is not None
        if self._allowance.is_used_up:
            self._newcomers.turn_off()
            return
        with self._allowance.looking():  # without what attaching takes: that is once
            census = take_census()
            roots = self._made(trainees(census, module, self._met.followed()))
            room = _MOST - len(self.models)
            if len(roots) > room:
                self._note(f"More than {_MOST} models were trained; the first ones were followed.")
            named: dict[str, nn.Module] = {}
            for root in roots[:room]:
                kind = type(unwrap(root)).__name__
                # Of an only model the name is not asked, and finding it takes time.
                name = kind if len(roots) == 1 else name_of(root)
                named[self._free_name(name, named)] = root
        trained = census.trained()
        if module is not None and not named and not is_grad_enabled() and self.models:
            self._twins.meet(census.owners(module))
        if module is not None and self.models:
            self._twins.meet_loaded(census.owners(module), trained)
        if named:
            if self.watcher is not None and trained:
                self.watcher.settle(trained)
            self._follow(named, census.optimizers)
        if trained and trained <= self._met.followed():
            self._newcomers.turn_off()
            return
        for owner in census.owners(module) if module is not None else ():
            for member in owner.modules():
                # A model that waits is judged again when this call of it is over: at the next.
                if member is not module or id(owner) not in self._unmade:
                    self._met.judge(member)

    def _judge_pass(self, roots: list[Tensor]) -> None:
        """Is a model behind this backward pass that nobody follows, and no optimizer holds?"""
        from nethook.running.detecting.discover import leaves_behind, take_census, unheld

        if self._allowance.is_used_up:
            return
        with self._allowance.looking():
            leaves = leaves_behind(roots)
            if not leaves or leaves.keys() & self._met.followed():
                return
            census = take_census()
            found = unheld(census, leaves)
        named: dict[str, nn.Module] = {}
        for name, root in list(found.items())[: _MOST - len(self.models)]:
            named[self._free_name(name, named)] = root
        if named:
            self._follow(named, census.optimizers)

    def _made(self, roots: list[nn.Module]) -> list[nn.Module]:
        """Those whose parameters have shapes; the others wait for their first forward."""
        from nethook.addresses.lazy_parameters import first_unmade

        made: list[nn.Module] = []
        for root in roots:
            parameter, kind = first_unmade(root), type(root).__name__
            if parameter is not None:
                self._unmade[id(root)] = kind, parameter
                continue
            if self._unmade.pop(id(root), None) is not None:
                self._note(
                    f"{kind} was followed from its second call on: the first one gave its "
                    "parameters their shapes."
                )
            made.append(root)
        return made

    def _follow(self, named: dict[str, nn.Module], optimizers: Sequence[Optimizer]) -> None:
        if self.watcher is None:
            self.watcher = self._start(self.options, named, optimizers)
        else:
            self.watcher.add(named, optimizers)
        self._twins.follow(named.values())
        # Only now: where an interrupt came in between, they are met again at the next call.
        for name, root in named.items():
            self.models[name] = type(root).__name__
            self._met.follow(root.parameters())
        for note in self.watcher.notes:
            self._note(note)

    def _look_at(self, optimizer: Optimizer, steps: int) -> None:
        """An optimizer steps that is not known: is what it holds followed?"""
        from nethook.running.detecting.discover import parameters_of, take_census

        missing = {id(p) for p in parameters_of(optimizer)} - self._met.followed()
        if not missing:
            steps = -1
        elif steps >= _PATIENCE:
            steps = -1
            census = take_census()
            owners = [
                type(root).__name__
                for root in census.roots
                if any(id(parameter) in missing for parameter in root.parameters())
            ]
            kind = type(optimizer).__name__
            if owners:
                self._note(
                    f"Not followed: {', '.join(sorted(set(owners)))}, which {kind} trains; no "
                    "module of it was ever called (nethook sees calls, not other methods)."
                )
            else:
                held = count(len(missing), "tensor")
                they = "it is" if len(missing) == 1 else "they are"
                self._note(f"Not followed: {held} that {kind} trains: {they} in no module.")
        else:
            steps += 1
            if self._newcomers is not None:
                self._met.judge_anew()
                self._newcomers.turn_on()
        self._met.stepped(optimizer, steps)

    # Helpers

    def _free_name(self, name: str, taken: Mapping[str, object]) -> str:
        wanted, count = name, 1
        while name in self.models or name in taken:
            count += 1
            name = f"{wanted}{count}"
        return name

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _take_off(self) -> None:
        for hooks in (self._newcomers, self._always):
            if hooks is not None:
                hooks.remove()
        self._newcomers = self._always = None

    def _give_up(self, error: Exception) -> None:
        """Something in here failed: the script goes on without being followed."""
        from nethook.hooks.stack import raised_by_signal

        if raised_by_signal(error):  # which is the script's, wherever it came up
            raise error
        if isinstance(error, RunFileError):
            said = f"Nothing is recorded: {str(error).rstrip('.')}."
            with suppress(Warning):  # with warnings as errors it is said at the end
                warnings.warn(
                    f"nethook: {said} Training is not affected.", RuntimeWarning, stacklevel=2
                )
            self._note(said.replace("is recorded", "was recorded"))
        else:
            self._note(f"nethook could not follow the models: {one_line(error).rstrip('.')}.")
        try:
            self._take_off()
        except Exception:
            self._newcomers = self._always = None


class _Abandons:
    """Abandons a session in a forked child, if there still is one."""

    def __init__(self, session: Session) -> None:
        self._session = weakref.ref(session)

    def __call__(self) -> None:
        session = self._session()
        if session is not None:
            session.abandon()
