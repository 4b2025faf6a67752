"""nethook in a test suite.

    def test_training(nethook_watch):                 # fails with what is wrong with the run
        model, optimizer = …
        nethook_watch(model, optimizer)
        train(model, optimizer)

    def test_model(nethook_checkup):                  # can it overfit a few samples? and more
        nethook_checkup(model, (x, y), nn.CrossEntropyLoss())

    pytest --nethook                                  # watches whatever any test trains

Pytest loads this file in every suite of an environment with nethook in it. So it imports nothing
heavy, and without a fixture or the option nothing happens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from nethook.doctor.finding import Finding
    from nethook.examining.checkup.result import Checkup
    from nethook.watching.watch import Watch

SEVERITIES: Final = ("info", "warning", "error")
MARKER: Final = (
    "nethook(ignore=[codes], fail_on=severity): how nethook judges what this test trains."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--nethook` and its like, and settings for an ini file."""
    group = parser.getgroup("nethook", "trainings inside tests")
    group.addoption(
        "--nethook", action="store_true", help="watch whatever tests train; findings fail them"
    )
    group.addoption(
        "--nethook-fail-on", choices=SEVERITIES, metavar="SEVERITY",
        help="from which severity on a finding fails a test: info, warning, error (the default)",
    )  # fmt: skip
    group.addoption(
        "--nethook-dir", metavar="DIR", help="keep the runs there; else in pytest's own folder"
    )
    parser.addini("nethook_fail_on", "as --nethook-fail-on", default="error")
    parser.addini("nethook_ignore", "codes of findings that are ignored", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker, which `--strict-markers` asks for, and what the option wants."""
    config.addinivalue_line("markers", MARKER)
    if config.getoption("nethook"):
        config.pluginmanager.register(WatchesAll(), "nethook-watches-all")
    if not hasattr(config, "workerinput"):  # the workers of xdist print nothing
        config.pluginmanager.register(Summary(), "nethook-summary")


class WatchesAll:
    """`--nethook`: every test function gets the fixture that watches what it trains."""

    def pytest_report_header(self, config: pytest.Config) -> str:
        """One line."""
        severity = _fail_on(config, None)
        return f"nethook: trainings are watched; findings from {severity} on fail a test"

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Each test, before it runs."""
        if isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "nethook_watches_all")


class Summary:
    """What was found in the tests, one line per finding, at the end.

    Findings come as properties of reports: that is how the workers of xdist send them.
    """

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collects what the report of a test has."""
        if report.when == "teardown":
            mine = [str(text) for name, text in report.user_properties if name == "nethook"]
            self._found += [(report.nodeid, text) for text in mine]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints it."""
        if self._found:
            terminalreporter.section("nethook")
            for test, text in self._found:
                terminalreporter.line(f"{test}: {text}")


@pytest.fixture
def nethook_watch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Watch]]:
    """A function like `nethook.watch`: at the end of the test its run is closed and judged."""
    from nethook.watching.watch import watch

    opened: list[Watch] = []

    def begin(*args: Any, **options: Any) -> Watch:
        path = _folder(request, tmp_path) / f"{_name(request)}-{len(opened)}.db"
        options.setdefault("to", path)
        opened.append(watch(*args, **options))
        opened[-1].be_silent()
        return opened[-1]

    yield begin
    for each in opened:
        each.close()
    _judge(request, [each.path for each in opened])


@pytest.fixture
def nethook_checkup() -> Callable[..., Checkup]:
    """A function like `nethook.checkup` that fails the test with what it finds."""

    def check(*args: Any, fail_on: str = "warning", **options: Any) -> Checkup:
        __tracebackhide__ = True
        from nethook.preflight import checkup

        result = checkup(*args, **options)
        bad = [finding for finding in result.findings if finding.at_least(_severity(fail_on))]
        if bad:
            pytest.fail(_text("the pre-flight check", bad), pytrace=False)
        return result

    return check


@pytest.fixture
def nethook_watches_all(request: pytest.FixtureRequest) -> Iterator[None]:
    """What `--nethook` does: what the test trains is watched, as under `nethook run`."""
    if "nethook_watch" in request.fixturenames:  # it has a watch of its own
        yield
        return
    from nethook.running.detecting.following import Session
    from nethook.running.detecting.watches import start_watching
    from nethook.running.options import RunOptions

    folder = _folder(request, request.getfixturevalue("tmp_path"))
    session = Session(
        RunOptions(str(folder / f"{_name(request)}.db"), name=request.node.nodeid, examine=False),
        start_watching,
    )
    session.begin()
    try:
        yield
    finally:
        session.end()
    _judge(request, [] if session.watcher is None else session.watcher.paths)


def _judge(request: pytest.FixtureRequest, paths: Sequence[Path]) -> None:
    """Fails the test with what the doctor finds in these runs."""
    __tracebackhide__ = True
    from nethook.doctor.diagnose import diagnose

    marker = request.node.get_closest_marker("nethook")
    given = marker.kwargs if marker is not None else {}
    ignore = [*request.config.getini("nethook_ignore"), *given.get("ignore", ())]
    fail_on = _fail_on(request.config, given.get("fail_on"))
    for path in paths:
        with suppress(FileNotFoundError):  # a run in which nothing was recorded
            findings = diagnose(path, ignore=ignore)
            for finding in findings:
                request.node.user_properties.append(("nethook", str(finding)))
            bad = [finding for finding in findings if finding.at_least(_severity(fail_on))]
            if bad:
                pytest.fail(_text(str(path), bad), pytrace=False)


def _text(what: str, findings: list[Finding]) -> str:
    lines = [f"{finding}\n  fix: {finding.fix}" for finding in findings]
    noun = "finding" if len(findings) == 1 else "findings"
    return f"nethook: {len(findings)} {noun} in {what}\n" + "\n".join(lines)


def _fail_on(config: pytest.Config, marked: str | None) -> str:
    """The marker comes first, then the command line, then the ini file."""
    given = marked or config.getoption("nethook_fail_on") or config.getini("nethook_fail_on")
    return str(_severity(given))


def _severity(name: str) -> Any:
    if name not in SEVERITIES:
        raise pytest.UsageError(
            f"nethook: `fail_on` must be one of {', '.join(SEVERITIES)}; got {name!r}."
        )
    return name


def _folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where runs go: a folder per worker, so that none waits for another."""
    asked: str | None = request.config.getoption("nethook_dir")
    if not asked:
        return tmp_path
    worker: dict[str, str] = getattr(request.config, "workerinput", {})
    return Path(asked) / worker.get("workerid", "")


def _name(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^\w.-]+", "-", request.node.name)[:100]
