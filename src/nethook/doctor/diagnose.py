"""`diagnose` and `assert_healthy`: a run, shown to every rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nethook.doctor.causes import root_causes
from nethook.doctor.finding import SEVERITIES, Finding, Severity
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.rules import all_rules
from nethook.errors import NethookError, OptionError, UnhealthyError
from nethook.runs.run import Run, open_run


def diagnose(
    run: Run | str | Path,
    *,
    ignore: Iterable[str] = (),
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    rules: Sequence[Rule] | None = None,
) -> list[Finding]:
    """What is wrong with a training run, root causes first; an empty list when nothing is.

        for finding in nethook.diagnose("runs/mnist.db"):
            print(finding)

    Arguments:
        run: a run file, also while it is being written, or what `open_run` returned.
        ignore: codes that are not reported.
        thresholds: other thresholds, by code: `{"dead-units": {"share": 0.3}}`.
        rules: these rules instead of all.

    Raises:
        RunFileError: the file cannot be read.
        OptionError: a code or a threshold that does not exist.
    """
    chosen = list(all_rules()) if rules is None else list(rules)
    ignored, changed = set(ignore), dict(thresholds or {})
    known = {rule.code for rule in chosen}
    for code in (*ignored, *changed):
        if code not in known:
            raise OptionError(_no_such_code(code, known))
    if isinstance(run, Run):
        return _diagnosed(run, chosen, ignored, changed)
    with open_run(run) as opened:
        return _diagnosed(opened, chosen, ignored, changed)


def assert_healthy(
    run: Run | str | Path,
    *,
    ignore: Iterable[str] = (),
    severity: Severity = "warning",
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Raises where a run has findings as severe as that, for use in a test suite.

        nethook.assert_healthy("runs/mnist.db", ignore=["repeated-batch"])

    Raises:
        UnhealthyError: an `AssertionError`; its message lists the findings.
    """
    if severity not in SEVERITIES:
        raise OptionError(f"severity is one of {', '.join(SEVERITIES)}; got {severity!r}.")
    found = diagnose(run, ignore=ignore, thresholds=thresholds)
    bad = [finding for finding in found if finding.at_least(severity)]
    if bad:
        lines = [f"- {finding}\n  fix: {finding.fix}" for finding in bad]
        noun = "finding" if len(bad) == 1 else "findings"
        raise UnhealthyError(f"the run has {len(bad)} {noun}:\n" + "\n".join(lines))


def _diagnosed(
    run: Run, rules: list[Rule], ignored: set[str], changed: Mapping[str, Mapping[str, float]]
) -> list[Finding]:
    history = History(run)
    found: list[tuple[Cause, Finding]] = []
    for rule in rules:
        thresholds = rule.thresholds(changed.get(rule.code, {}))
        try:
            found += [(rule.cause, each) for each in rule.look(history, thresholds)]
        except NethookError:
            raise
        except Exception as error:  # a rule of a stranger's must not hide what the others found
            warnings.warn(f"the rule {rule.code} failed: {error!r}.", stacklevel=3)
    # What is ignored is no cause either: what it would explain is then told by itself.
    return root_causes([each for each in found if each[1].code not in ignored])


def _no_such_code(code: str, known: Iterable[Any]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(code, list(known), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"there is no rule {code!r}.{hint}"
