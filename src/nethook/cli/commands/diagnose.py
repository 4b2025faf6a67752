"""`nethook diagnose RUN`: what is wrong with a run, for people, scripts and CI."""

from __future__ import annotations

import enum
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nethook.cli.exit import FOUND, errors_in_words
from nethook.cli.parameters import RunFile

if TYPE_CHECKING:
    from nethook.doctor.verdict import Verdict


class FailOn(enum.StrEnum):
    """From which severity on the exit code is 3."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Format(enum.StrEnum):
    """What is printed."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"
    SARIF = "sarif"


def diagnose(
    run: RunFile,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text, json, or for CI: junit (XML), github (annotations of a workflow), sarif.",
        ),
    ] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on", help="Exit with code 3 if there is a finding of this severity or above."
        ),
    ] = FailOn.ERROR,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="CODE", help="Ignore findings with this code (may be repeated)."
        ),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="CODE.NAME=NUMBER",
            help="Change a threshold, such as dead-units.share=0.4 (may be repeated).",
        ),
    ] = None,
) -> None:
    """Diagnose a run: what is wrong, where, since when, and what to change.

    The exit code is 0 if no finding is as severe as --fail-on, 3 if one is, and 2 if the run cannot
    be read or an option is wrong. The run may still be written to.
    """
    with errors_in_words("diagnose"):
        from nethook.doctor.diagnose import diagnose as diagnosed

        findings = diagnosed(run, ignore=ignore or (), thresholds=_thresholds(threshold or []))
    rows = [finding.to_dict() for finding in findings]
    verdict = _verdict(run, rows)
    chosen = Format.JSON if as_json else form
    if chosen is Format.TEXT:
        typer.echo("\n".join(_lines(run, rows, verdict)))
    elif chosen is Format.JSON:
        data = {
            "run": str(run),
            "verdict": {"state": verdict.state, "text": str(verdict)},
            "findings": rows,
        }
        typer.echo(json.dumps(data, indent=2))
    else:
        typer.echo(_for_ci(chosen, run, rows, verdict, fail_on))
    if any(finding.at_least(fail_on.value) for finding in findings):
        raise typer.Exit(FOUND)


def _verdict(run: Path, findings: list[dict[str, Any]]) -> Verdict:
    from nethook.doctor.rules import all_rules
    from nethook.doctor.verdict import verdict_of
    from nethook.runs.reading.run import open_run

    with open_run(run) as opened:
        return verdict_of(opened, findings, checks=sum(1 for _ in all_rules()))


def _thresholds(given: list[str]) -> dict[str, dict[str, float]]:
    """`dead-units.share=0.4` as `{"dead-units": {"share": 0.4}}`."""
    from nethook.errors import OptionError

    thresholds: dict[str, dict[str, float]] = {}
    for text in given:
        name, _, value = text.partition("=")
        code, dot, field = name.partition(".")
        try:
            if not (code and dot and field):
                raise ValueError(text)
            thresholds.setdefault(code, {})[field] = float(value)
        except ValueError:
            raise OptionError(
                f"`--threshold` must be CODE.NAME=NUMBER; got {text!r}. Example: "
                "dead-units.share=0.4."
            ) from None
    return thresholds


def _for_ci(
    form: Format, run: Path, rows: list[dict[str, Any]], verdict: Verdict, fail_on: FailOn
) -> str:
    from importlib.metadata import version

    from nethook.exporting.ci.github import github_annotations
    from nethook.exporting.ci.junit import junit_report
    from nethook.exporting.ci.sarif import sarif_log
    from nethook.text.findings import read_findings

    findings = read_findings(rows)
    if form is Format.GITHUB:
        return github_annotations(findings, str(verdict))
    if form is Format.SARIF:
        return sarif_log(findings, run=str(run), verdict=str(verdict), version=version("nethook"))
    return junit_report(
        findings, run=run.stem, verdict=str(verdict), fine=verdict.is_fine, fail_on=fail_on.value
    )


def _lines(run: Path, rows: list[dict[str, Any]], verdict: Verdict) -> list[str]:
    from nethook.runs.format.texts import clean_name
    from nethook.text.finding_lines import finding_lines
    from nethook.text.paragraphs import wrapped
    from nethook.text.terminal import style_of

    style = style_of(sys.stdout)
    lines = [clean_name(str(run))]
    if verdict.state != "findings":  # those are counted where they are listed
        lines += wrapped(str(verdict), style, "good" if verdict.is_fine else "warning")
    return [*lines, *finding_lines(rows, style, _tried(run))] if rows else lines


def _tried(run: Path) -> object:
    """The fixes that `nethook run --try-fix` has tried."""
    from nethook.runs.reading.run import open_run

    with open_run(run) as opened:
        return opened.info.get("tried")
