"""`diagnose` and `assert_healthy`: a run, shown to every rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from nethook.doctor.causes import root_causes
from nethook.doctor.finding import SEVERITIES, Finding, Severity
from nethook.doctor.findings import Findings
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.rules import all_rules
from nethook.doctor.settings import Changes, Settings, project_settings
from nethook.doctor.verdict import verdict_of
from nethook.doctor.whole_paths import with_whole_paths
from nethook.errors import OptionError, RunFileError, UnhealthyError
from nethook.runs.reading.run import Run, open_run


def diagnose(
    run: Run | str | Path,
    *,
    ignore: Iterable[str] = (),
    thresholds: Changes | None = None,
    rules: Sequence[Rule] | None = None,
) -> Findings:
    """What is wrong with a training run, root causes first; an empty list when nothing is.

        for finding in nethook.diagnose("runs/mnist.db"):
            print(finding)

    What `[tool.nethook]` says in the nearest `pyproject.toml` holds as well.

    Arguments:
        run: a run file, also while it is being written, or what `open_run` returned.
        ignore: codes that are not reported.
        thresholds: other thresholds, by code: `{"dead-units": {"share": 0.3}}`.
        rules: these rules instead of all.

    Returns:
        A list of `nethook.Finding` that shows itself in a terminal and in a notebook, with the
        `verdict` on the run above it.

    Raises:
        RunFileError: the file cannot be read.
        OptionError: a code or a threshold that does not exist.
    """
    if not isinstance(run, Run):
        with open_run(run) as opened:
            found, failed = _found(opened, ignore, thresholds, rules)
    else:
        found, failed = _found(run, ignore, thresholds, rules)
    for text in failed:
        warnings.warn(text, stacklevel=2)
    return found


def _found(
    run: Run, ignore: Iterable[str], thresholds: Changes | None, rules: Sequence[Rule] | None
) -> tuple[Findings, list[str]]:
    findings, failed, checks = examine(run, ignore=ignore, thresholds=thresholds, rules=rules)
    verdict = verdict_of(run, [finding.to_dict() for finding in findings], checks)
    return Findings(findings, verdict, run.info.get("tried")), failed


def examine(
    run: Run | str | Path,
    *,
    ignore: Iterable[str] = (),
    thresholds: Changes | None = None,
    rules: Sequence[Rule] | None = None,
    until: int | None = None,
) -> tuple[list[Finding], list[str], int]:
    """As `diagnose`; which rules failed, in words; and how many there were.

    `until` is the last step to look at.
    """
    chosen = list(all_rules()) if rules is None else list(rules)
    settings = _settled(chosen, ignore, thresholds, all_known=rules is None)
    with nullcontext(run) if isinstance(run, Run) else open_run(run) as opened:
        return *_examined(opened, chosen, settings, until), len(chosen)


def assert_healthy(
    run: Run | str | Path,
    *,
    ignore: Iterable[str] = (),
    severity: Severity = "warning",
    thresholds: Changes | None = None,
) -> None:
    """Raises where a run has findings as severe as that, for use in a test suite.

        nethook.assert_healthy("runs/mnist.db", ignore=["repeated-batch"])

    Raises:
        UnhealthyError: an `AssertionError`; its message lists the findings.
        RunFileError, OptionError: as `diagnose` does.
    """
    if severity not in SEVERITIES:
        raise OptionError(f"`severity` must be one of {', '.join(SEVERITIES)}; got {severity!r}.")
    findings = diagnose(run, ignore=ignore, thresholds=thresholds)
    bad = [finding for finding in findings if finding.at_least(severity)]
    if bad:
        lines = [f"- {finding}\n  fix: {finding.fix}" for finding in bad]
        noun = "finding" if len(bad) == 1 else "findings"
        raise UnhealthyError(f"the run has {len(bad)} {noun}:\n" + "\n".join(lines))


def _settled(
    rules: Sequence[Rule], ignore: Iterable[str], thresholds: Changes | None, *, all_known: bool
) -> Settings:
    """What the project and the call have set, checked against the rules."""
    rule_of = {rule.code: rule for rule in rules}
    project = project_settings()
    settings = project.also(ignore, thresholds)
    for code in (*settings.ignore, *settings.thresholds):
        ours = code in project.ignore or code in project.thresholds
        if code not in rule_of and (all_known or not ours):
            prefix = f"{project.path}: " if ours and project.path else ""
            raise OptionError(prefix + _no_such_code(code, rule_of))
    for code, values in settings.thresholds.items():
        if code in rule_of:
            rule_of[code].thresholds(values)  # raises where it has no such threshold
    return settings


def _examined(
    run: Run, rules: Sequence[Rule], settings: Settings, until: int | None
) -> tuple[list[Finding], list[str]]:
    history = History(run, until)
    caused: list[tuple[Cause, Finding]] = []
    failed: list[str] = []
    for rule in rules:
        thresholds = rule.thresholds(settings.thresholds.get(rule.code, {}))
        try:
            caused += [(rule.cause, finding) for finding in rule.look(history, thresholds)]
        except RunFileError:
            raise
        except Exception as error:  # one rule must not hide what the others found
            failed.append(f"the rule {rule.code} failed: {error!r}.")
    # What is ignored is no cause either: what it would explain is reported on its own.
    kept = [entry for entry in caused if entry[1].code not in settings.ignore]
    causes = root_causes(kept, slack=max(5, history.steps // 20))
    return with_whole_paths(causes, history), failed


def _no_such_code(code: str, codes: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(code, list(codes), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"there is no rule {code!r}.{hint}"
