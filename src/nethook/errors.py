"""Every error nethook raises, as one tree.

    NethookError
    ├── PatternError          (ValueError)    a pattern or a path that cannot be read
    ├── NoSuchSiteError       (KeyError)      nothing in the model answers to that name or pattern
    ├── InputsError           (TypeError)     inputs in a form that nethook does not take
    ├── OptionError           (ValueError)    an option with a value it cannot have
    ├── MissingLibraryError   (ImportError)   something needs a library that is not installed
    ├── OldTorchError         (ImportError)   torch is older than nethook needs
    ├── TorchChangedError     (RuntimeError)  torch lacks what nethook cannot do without
    ├── ScopeError            (RuntimeError)  a scope entered twice, or used where it cannot be
    ├── EditError             (ValueError)    an edit that cannot be applied
    │   ├── InPlaceEditError                  it wrote to its argument instead of returning a value
    │   └── UnfiredError                      the scope ended and it was never applied
    ├── RecipeError           (ValueError)    a recipe that cannot be saved or loaded
    ├── NotFiniteError        (FloatingPointError)  a NaN or an infinity, where that was checked
    ├── InitError             (ValueError)    weights that cannot be started as asked
    │   └── ActivationError                   an activation that is not known, or has no gain
    ├── RunFileError          (OSError)       a run file that cannot be written or read
    │   ├── NoSuchRunError    (FileNotFoundError)  there is no such file
    │   ├── RunExistsError    (FileExistsError)    a run is there already, and is never overwritten
    │   ├── RunInUseError                     another process writes this run
    │   ├── OtherModelError   (ValueError)    a run of another model, which this one cannot continue
    │   └── NotARunError      (ValueError)    a foreign, newer, damaged or hostile file
    ├── UnhealthyError        (AssertionError)  a run has findings, where none were expected
    ├── FeatureShapeError     (ValueError)    features without exactly one row per sample, all alike
    ├── FeaturesError         (OSError)       features on disk that cannot be written or read
    │   ├── NoSuchFeaturesError  (FileNotFoundError)  there are none, or not all of them yet
    │   ├── FeaturesExistError   (FileExistsError)    they are never overwritten
    │   ├── ResumeError       (ValueError)    an extraction that these arguments cannot continue
    │   └── NotFeaturesError  (ValueError)    a foreign, newer, damaged or hostile file
    ├── SweepError            (ValueError)    a study that cannot be made as asked
    ├── ResultError           (ValueError)    a result that is not defined, or a file of one
    └── ReadError             (LookupError)   a value that cannot be read from a tape
        ├── NotAskedError                     that quantity was not asked for
        ├── NotRunError                       the site has not run
        ├── NoGradientError                   no gradient has arrived, or none can
        ├── SeveralCallsError                 one value was asked for and there are several
        └── OverwrittenError                  the value was written in place after it was captured

Each is also the standard type that a caller would expect, so `except LookupError` and
`except ValueError` keep working.
"""

from __future__ import annotations


class NethookError(Exception):
    """The base of every error that nethook raises."""


class PatternError(NethookError, ValueError):
    """A pattern or a path inside a value that cannot be read."""


class NoSuchSiteError(NethookError, KeyError):
    """Nothing in the model answers to that name or pattern; the message names what is close."""

    # KeyError shows the repr of its message, which turns a sentence into a quoted string.
    __str__ = Exception.__str__


class InputsError(NethookError, TypeError):
    """Inputs in a form that nethook does not take."""


class OptionError(NethookError, ValueError):
    """An option with a value that it cannot have."""


class MissingLibraryError(NethookError, ImportError):
    """Something needs a library, or a program, that is not installed; the message says which."""


class TorchChangedError(NethookError, RuntimeError):
    """This torch has lost a private name that nethook cannot do without."""


class OldTorchError(NethookError, ImportError):
    """The torch of this environment is older than nethook needs; the message says what to type."""


class ScopeError(NethookError, RuntimeError):
    """A scope that was entered twice, or used where it cannot be."""


class EditError(NethookError, ValueError):
    """An edit that cannot be applied where it was meant to be."""


class InPlaceEditError(EditError):
    """An edit wrote to its argument and returned None; an edit returns the new value."""


class UnfiredError(EditError):
    """A scope ended, and an edit in it was never applied."""


class RecipeError(NethookError, ValueError):
    """A recipe that cannot be saved or loaded."""


class NotFiniteError(NethookError, FloatingPointError):
    """A NaN or an infinity was found where `check_finite` looked."""


class InitError(NethookError, ValueError):
    """Weights, or a layer of them, that cannot be initialised as asked."""


class ActivationError(InitError):
    """An activation that is not known, or that has no gain."""


class RunFileError(NethookError, OSError):
    """A run file that cannot be written or read."""


class NoSuchRunError(RunFileError, FileNotFoundError):
    """There is no run file at that path."""


class RunExistsError(RunFileError, FileExistsError):
    """A run is there already, and is never overwritten."""


class RunInUseError(RunFileError):
    """Another process is writing this run."""


class OtherModelError(RunFileError, ValueError):
    """The run of another model, which this one cannot continue; the message names what differs."""

    differences: str = ""
    """What differs, without the rest of the message."""


class NotARunError(RunFileError, ValueError):
    """A file that is foreign, newer than this nethook, damaged, or not what nethook writes."""


class UnhealthyError(NethookError, AssertionError):
    """A run has findings, where `assert_healthy` expected none."""


class FeatureShapeError(NethookError, ValueError):
    """Features without exactly one row per sample, or rows that are not all alike."""


class FeaturesError(NethookError, OSError):
    """Features on disk that cannot be written or read."""


class NoSuchFeaturesError(FeaturesError, FileNotFoundError):
    """There are no features in that folder, or their extraction has not ended."""


class FeaturesExistError(FeaturesError, FileExistsError):
    """Features are there already, and are never overwritten."""


class ResumeError(FeaturesError, ValueError):
    """An extraction was begun there that these arguments cannot continue."""


class NotFeaturesError(FeaturesError, ValueError):
    """A file that is foreign, newer than this nethook, damaged, or not what nethook writes."""


class SweepError(NethookError, ValueError):
    """A study of causes that cannot be made as asked: its metric, its cells or its change."""


class ResultError(NethookError, ValueError):
    """A number of a result that is not defined, or a file of a result that cannot be used."""


class ReadError(NethookError, LookupError):
    """A value that cannot be read from a tape."""


class NotAskedError(ReadError):
    """The quantity was not asked for when the trace was opened."""


class NotRunError(ReadError):
    """The site has not run in this scope, or the forward was stopped before it."""


class NoGradientError(ReadError):
    """No gradient has arrived at this value, or none can."""


class SeveralCallsError(ReadError):
    """One value was asked for where there are several."""


class OverwrittenError(ReadError):
    """The value was written in place after it was captured."""
