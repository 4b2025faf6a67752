"""Writes docs/findings.md: every code, a program that has the fault, and what nethook says of it.

    python -m tools.findings_page [CODE ...]

Programs are those of zoo/ that expect the code, the shortest first; each runs under `nethook run`
(a few minutes in all). With codes, only these are run again, and the rest of the page stays.
"""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nethook.doctor.rule import Rule
from nethook.doctor.rules import own_rules
from tests.running.both import Warm
from tools.rules_page import CAUSES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "findings.md"
PROGRAMS = ROOT / "zoo" / "programs"
FOLDERS = (PROGRAMS, *sorted((ROOT / "zoo" / "wild").iterdir()))
WITHOUT = {
    "replica-divergence": "It takes several processes, and has no example here.",
    "missing-terminal-mask": "It is a question about episodes, and has no example here.",
    "optimizer-recreated": "The optimizer is made inside the loop: it has no example here.",
    "doubtful-result": "It says that nothing else can be said, and has no example here.",
}
"""Codes that no program of the zoo has, and why."""

_INTRODUCTION = """\
# Catalogue of findings

Everything that the doctor recognises, with a small program that has the fault and the part of the
verdict that names it. Codes are grouped by kind of cause, and causes come before symptoms: if a run
has both, the symptom is listed below its cause. [How the doctor works](doctor.md) says how a
verdict is made and how often it is right; its last section lists the thresholds of each code.

The programs are those of `zoo/`, on which the doctor is measured. Where one imports `common`, that
is a file with data and options. `python -m tools.findings_page` runs them and writes this page.
"""


@dataclass(frozen=True)
class Program:
    """A program with a fault, and what it declares in its docstring."""

    path: Path

    @cached_property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def docstring(self) -> str:
        """Its docstring."""
        return ast.get_docstring(ast.parse(self.text)) or ""

    @property
    def what(self) -> str:
        """The first sentence of the docstring."""
        return " ".join(self.docstring.partition("\n\n")[0].split()).rstrip(".")

    @property
    def expect(self) -> str:
        """The code that it is an example of."""
        found = re.search(r"^expect: ([\w-]+)", self.docstring, re.MULTILINE)
        return found[1] if found else ""

    @property
    def code(self) -> str:
        """The program without its docstring."""
        first = ast.parse(self.text).body[0]
        return "\n".join(self.text.splitlines()[first.end_lineno :]).strip("\n")


def programs(code: str) -> list[Program]:
    """The programs that expect a code, the shortest first."""
    found = [Program(path) for folder in FOLDERS for path in folder.glob("*.py")]
    wanted = [program for program in found if program.expect == code]
    return sorted(wanted, key=lambda program: (len(program.code), program.path.name))


def verdict(program: Program, code: str, warm: Warm) -> str:
    """What `nethook run` prints of this finding; empty if it does not find it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        folder.mkdir()
        for path in (program.path, PROGRAMS / "common.py"):
            shutil.copy(path, folder)
        words = ("-m", "nethook", "run", "--to", "run.db", program.path.name)
        return of_finding(warm.run(*words, cwd=folder).closing, code)


def of_finding(text: str, code: str) -> str:
    """The lines of one finding in what `nethook run` has printed."""
    found = re.search(rf"^  (?:error|warning|info): {code}\b.*\n(?:    .*\n)*", text, re.MULTILINE)
    return "" if found is None else re.sub(r"^  ", "", found[0], flags=re.MULTILINE).rstrip()


def entry(rule: Rule, warm: Warm) -> str:
    """The part of the page about one code, made by running programs until one shows it."""
    for program in programs(rule.code):
        shown = verdict(program, rule.code, warm)
        if shown:
            return _entry(rule, program, shown)
    if rule.code in WITHOUT:
        return f"{_head(rule)}\n{WITHOUT[rule.code]}\n"
    raise SystemExit(f"No program of zoo/ shows {rule.code}.")


def _head(rule: Rule) -> str:
    module = importlib.import_module(rule.look.__module__)
    head, _, rest = (module.__doc__ or "").partition("\n")
    parts = re.split(r"\n(?=(?:Cause|Evidence|Fix|Silent): )", "\n" + rest.strip())
    said = [" ".join(part.split()) for part in parts]
    fixes = [part.removeprefix("Fix: ") for part in said if part.startswith("Fix: ")]
    fix = [f"**Fix.** {text[0].upper()}{text[1:]}\n" for text in fixes]
    return "\n".join([f"### `{rule.code}`\n", f"{head}\n", *fix])


def _entry(rule: Rule, program: Program, shown: str) -> str:
    name = program.path.relative_to(ROOT).as_posix()
    return "\n".join(
        [
            _head(rule),
            f'<details markdown="1">\n<summary>Example: {_plain(program.what)}</summary>\n',
            f"`{name}`\n\n```py\n{program.code}\n```\n",
            "</details>\n",
            f"```text\n{shown}\n```\n",
        ]
    )


def _plain(text: str) -> str:
    """A sentence as HTML, where backticks mean nothing."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", text)


def entries(page: str) -> dict[str, str]:
    """The parts of a page, by code."""
    parts = re.split(r"^(?=##)", page, flags=re.MULTILINE)
    heads = ((re.match(r"### `([\w-]+)`\n", part), part) for part in parts)
    return {head[1]: part for head, part in heads if head}


def page(parts: dict[str, str]) -> str:
    """The page, from its parts."""
    lines = [_INTRODUCTION]
    cause = -1
    for rule in own_rules():
        if rule.cause != cause:
            cause = int(rule.cause)
            lines.append(f"## {CAUSES[cause]}\n")
        lines.append(parts[rule.code].rstrip("\n") + "\n")
    return "\n".join(lines)


def main(codes: list[str]) -> None:
    """Writes the page."""
    parts = entries(PAGE.read_text(encoding="utf-8")) if codes and PAGE.exists() else {}
    warm = Warm()
    for rule in own_rules():
        if rule.code in codes or rule.code not in parts:
            parts[rule.code] = entry(rule, warm)
            sys.stderr.write(f"{rule.code}\n")
    warm.stop()
    PAGE.write_text(page(parts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
