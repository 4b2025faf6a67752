"""The public names: pinned, resolvable, documented."""

from __future__ import annotations

import ast
import importlib
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import nethook

ROOT = Path(__file__).parents[1]
PUBLIC = [
    "Callbacks",
    "Finding",
    "Inputs",
    "assert_healthy",
    "attention_probs",
    "audit",
    "autograd_graph",
    "checkup",
    "classic",
    "diagnose",
    "edit",
    "edits",
    "errors",
    "extract",
    "features",
    "figures",
    "get_module",
    "get_parameter",
    "init",
    "inputs",
    "interp",
    "load_features",
    "open_run",
    "preserve",
    "replay",
    "select",
    "set_parameter",
    "sinks",
    "sites",
    "suspended",
    "trace",
    "types",
    "watch",
]


def test_the_list_is_pinned_and_sorted() -> None:
    assert nethook.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_resolves_to_itself(name: str) -> None:
    value = getattr(nethook, name)
    assert value.__name__.rpartition(".")[2] == name
    assert value.__doc__
    assert vars(nethook)[name] is value  # kept, so that the second use is a plain lookup


CLASSIC = [
    "InstrumentedModel",
    "StopForward",
    "Trace",
    "TraceDict",
    "hierarchical_subsequence",
    "invoke_with_optional_args",
    "module_names",
    "parameter_names",
    "recursive_copy",
    "replace_module",
    "set_requires_grad",
    "subsequence",
]


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_names_resolve_and_are_not_listed(name: str) -> None:
    assert getattr(nethook, name) is getattr(nethook.classic, name)
    assert name not in nethook.__all__


def public_functions() -> list[tuple[str, str]]:
    """Every public function and class, with the package that users read it from."""
    pairs = [("nethook", name) for name in [*nethook._SOURCES, *CLASSIC]]
    for name in ("classic", "edits", "figures", "init", "interp"):
        package = nethook._MODULES[name]
        values = vars(importlib.import_module(package))
        pairs += [(package, key) for key, value in values.items() if is_public(key, value)]
    return pairs


def is_public(name: str, value: object) -> bool:
    return callable(value) and not name.startswith("_")


@pytest.mark.parametrize(("package", "name"), public_functions())
def test_no_module_has_the_name_of_a_public_function(package: str, name: str) -> None:
    """A module of that name would take the function's place when it is imported."""
    before = getattr(importlib.import_module(package), name)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{package}.{name}")
    assert getattr(importlib.import_module(package), name) is before


def test_the_functions_that_once_were_modules_are_among_them() -> None:
    pairs = public_functions()
    assert {("nethook.init", name) for name in ("plan", "verify", "sweep", "moments")} <= {*pairs}
    assert {("nethook.figures", name) for name in ("compare", "report")} <= {*pairs}


def test_dir_lists_every_public_name_and_no_other() -> None:
    assert {"__version__", "__all__", "__doc__"} <= {*dir(nethook)}
    assert [name for name in dir(nethook) if not name.startswith("__")] == PUBLIC


def test_the_version_is_the_installed_one() -> None:
    assert nethook.__version__ == version("nethook")


def test_type_checkers_read_the_same_names() -> None:
    """The block for type checkers repeats the list; the two must not drift apart."""
    tree = ast.parse(Path(nethook.__file__).read_text(encoding="utf-8"))
    (block,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = {
        alias.asname: (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    sources = {name: (module, name) for name, module in nethook._SOURCES.items()}
    modules = {name: tuple(path.rsplit(".", 1)) for name, path in nethook._MODULES.items()}
    assert seen == {**sources, **modules}


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("trase", "trace"), ("Select", "select"), ("getmodule", "get_module"), ("input", "inputs")],
)
def test_an_unknown_name_names_the_closest(wrong: str, meant: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(nethook, wrong)
    assert str(caught.value) == (
        f"module 'nethook' has no attribute {wrong!r}. Did you mean `nethook.{meant}`?"
    )
    assert caught.value.name == wrong


def test_a_name_like_no_other_gets_no_guess() -> None:
    with pytest.raises(AttributeError, match=r"^module 'nethook' has no attribute 'zzz'\.$"):
        nethook.zzz


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_documented(name: str) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert re.search(rf"\bnethook\.{name}\b", text), f"nethook.{name} is in no page of the docs"
