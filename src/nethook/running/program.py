"""Running a program of the user's exactly as `python` runs it.

`python` gives a script a `__main__` of its own, its arguments, its folder as the first of
`sys.path`, and nothing of Python's above it on the stack. Everything here is held against bare
Python by tests/running/test_program.py.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import io
import os
import pkgutil
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

# What stands between nethook and the script on the stack looks like what a warning finds where the
# stack has ended ("sys:1", and from Python 3.13 on "<sys>:0"): `warnings.warn(…, stacklevel=2)` at
# the top of a script says the same as ever. A few levels, for a few levels of `stacklevel`.
_LEVELS: Final = 4
_FILE, _LINE = ("<sys>", 0) if sys.version_info >= (3, 13) else ("sys", 1)
_TOP: Final[dict[str, Any]] = {"__name__": "sys"}
exec(  # the filename and the line number are the point of it
    compile("def top(call, n): return top(call, n - 1) if n else call()", _FILE, "exec"), _TOP
)
_TOP["top"].__code__ = _TOP["top"].__code__.replace(co_firstlineno=_LINE)
TOP_CODE: Final = _TOP["top"].__code__
"""The code of the last frames that are not the script's."""


class Program(NamedTuple):
    """What is to be run, as it stands on the command line.

    Arguments:
        name: the path of a script, of a folder or an archive with a `__main__.py`, `-` for the
            standard input; or, with `module`, the name after `-m`.
        args: what follows; all of it belongs to the program.
        module: whether `name` is that of a module.
    """

    name: str
    args: tuple[str, ...] = ()
    module: bool = False

    @property
    def title(self) -> str:
        """A short name, for the name of a file: `train` of `path/train.py`, `pkg.train` of `-m`."""
        if self.module:
            return self.name
        if self.name == "-":
            return "stdin"
        base = os.path.basename(os.path.abspath(self.name))  # noqa: PTH100, PTH119 - before Path
        return base.rpartition(".")[0] or base

    @property
    def command(self) -> list[str]:
        """How it is called, after `python`."""
        return [*(("-m",) if self.module else ()), self.name, *self.args]

    @property
    def folder(self) -> str | None:
        """What will be the first of `sys.path` while it runs; None where nothing is put there."""
        if not self.module and self.name != "-" and _holds_main(self.name):
            return _absolute(self.name)
        if sys.flags.safe_path:  # -P and -I
            return None
        if self.module:
            return _current_folder()
        if self.name == "-":
            return ""
        return os.path.dirname(os.path.realpath(_absolute(self.name)))  # noqa: PTH120

    def run(self) -> None:
        """Run it to its end. What it raises is raised, also `SystemExit`."""
        main = _fresh_main()
        _set_orig_argv(self.command)
        if self.module:
            sys.argv[:] = ["-m", *self.args]
            _first_on_path(self.folder)
            _run_module_as_main(self.name, True)
            return
        sys.argv[:] = [self.name, *self.args]
        if self.name == "-":
            _first_on_path(self.folder)
            code = _compiled(sys.stdin.buffer.read(), "<stdin>")
            main.__dict__.update({"__file__": "<stdin>", "__cached__": None})
            _from_top(exec, code, main.__dict__)
            return
        if _holds_main(self.name):
            # As `python folder/`: the folder comes first, whatever else is said of safe paths.
            _first_on_path(self.folder)
            _run_module_as_main("__main__", False)
            return
        path = _absolute(self.name)
        code, loader = _load(path)
        _first_on_path(self.folder)
        main.__loader__ = loader
        main.__dict__.update({"__file__": path, "__cached__": None})
        _from_top(exec, code, main.__dict__)


def _from_top(function: Callable[..., object], *args: object) -> None:
    _TOP["top"](partial(function, *args), _LEVELS)  # a partial has no frame


def _run_module_as_main(name: str, alter_argv: bool) -> None:
    # What `python -m` itself calls. It takes `__main__` from sys.modules, and ends with the
    # messages that people know when there is no such module.
    import runpy

    _from_top(runpy._run_module_as_main, name, alter_argv)  # type: ignore[attr-defined]


def _fresh_main() -> types.ModuleType:
    """A new `__main__`, with what bare Python puts into it, in its order."""
    main = types.ModuleType("__main__")
    main.__dict__.update({"__annotations__": {}, "__builtins__": builtins})
    main.__loader__ = importlib.machinery.BuiltinImporter
    sys.modules["__main__"] = main
    return main


def _set_orig_argv(command: Sequence[str]) -> None:
    """`sys.orig_argv` as if Python had been called with the program: some launchers read it."""
    # [python, options …, -m, nethook, run, …], [python, options …, bin/nethook, run, …], or
    # [python, options …, -c, text, …]: the last word of what is not in `sys.argv` is no option.
    own = len(sys.orig_argv) - len(sys.argv)
    options = sys.orig_argv[: max(own, 1)]
    if len(options) > 1 and options[-1] in ("-m", "-c"):
        options = options[:-1]
    sys.orig_argv[:] = [*options, *command]


def _first_on_path(folder: str | None) -> None:
    """Puts a folder before all others; that of nethook's own command was taken off."""
    if folder is not None:
        sys.path.insert(0, folder)


def _current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def _absolute(name: str) -> str:
    """The absolute path as `python` makes it: links, `..` and `//` stay as they were written."""
    if os.path.isabs(name):  # noqa: PTH117
        return name
    folder = _current_folder()
    return f"{folder}/{name}" if folder else name


def _holds_main(name: str) -> bool:
    """Whether a path is a folder or an archive, whose `__main__` is run."""
    return pkgutil.get_importer(name) is not None


def _load(path: str) -> tuple[types.CodeType, Any]:
    try:
        with io.open_code(path) as stream:
            source = stream.read()
    except OSError as error:
        sys.stderr.write(
            f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n"
        )
        raise SystemExit(2) from None
    code = pkgutil.read_code(io.BytesIO(source))
    if code is not None:
        return code, importlib.machinery.SourcelessFileLoader("__main__", path)
    return _compiled(source, path), importlib.machinery.SourceFileLoader("__main__", path)


def _compiled(source: bytes, filename: str) -> types.CodeType:
    code: types.CodeType = compile(source, filename, "exec", dont_inherit=True)
    return code
