"""What a project has set about findings, and what a call adds."""

from __future__ import annotations

from nethook.doctor.settings import Settings


def test_settings_add_up() -> None:
    project = Settings(frozenset({"a"}), {"dead-units": {"share": 0.1, "error": 0.9}})
    both = project.also(["b"], {"dead-units": {"share": 0.5}})
    assert both.ignore == {"a", "b"}
    assert both.thresholds == {"dead-units": {"share": 0.5, "error": 0.9}}
