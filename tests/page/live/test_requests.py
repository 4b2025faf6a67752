"""Malformed requests get a 400 and one line, whatever is sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nethook.page.folder import Folder
from nethook.page.live.app import make_app
from nethook.page.live.requests import WAY, problem_of
from tests.figures.shared import training

HERE = {"Host": "127.0.0.1:8420"}


def question(**changed: object) -> dict:
    """What Dash's own script asks."""
    return {
        "output": "..page.children...view.data..",
        "outputs": [{"id": "page", "property": "children"}, {"id": "view", "property": "data"}],
        "inputs": [
            {"id": "url", "property": "pathname", "value": "/"},
            {"id": "url", "property": "search", "value": ""},
            {"id": "tick", "property": "n_intervals", "value": 0},
        ],
        "changedPropIds": ["url.pathname"],
        "state": [{"id": "have", "property": "data", "value": {}}],
        **changed,
    }


@pytest.fixture(scope="module")
def client():
    return make_app(Folder(training())).server.test_client()


def ask(client, body: bytes, kind: str = "application/json"):
    return client.post(WAY, data=body, content_type=kind, headers=HERE)


def test_what_dash_asks_is_answered(client) -> None:
    """The names of the callback are the ones that the page itself is told."""
    told = client.get("/_dash-dependencies", headers=HERE).get_json()
    assert question()["output"] in [each["output"] for each in told]
    answered = ask(client, json.dumps(question()).encode())
    assert answered.status_code == 200
    assert "multi" in answered.get_json()


def with_value(where: str, at: int, value: object) -> dict:
    made = question()
    made[where][at]["value"] = value
    return made


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"x", b"\xff\xfe", b"[]", b"1", b"null", b"{}", b'"text"', b"[" * 100_000,
        b"1" * 10_000, b'{"output": "\\ud800"}', b'{"output": NaN}',
        *(
            json.dumps(each).encode()
            for each in (
                {"output": 1}, {"output": ["x"]}, {"output": {}}, question(output="other.children"),
                question(output="have.data"), question(outputs=None), question(outputs=[1, 2]),
                question(inputs=[]), question(inputs="x"), question(inputs={"a": 1}),
                question(inputs=[[]]), question(state=None), question(state=[{"id": {}}]),
                question(changedPropIds=None), question(changedPropIds=[[]]),
                with_value("inputs", 0, 5), with_value("inputs", 0, ["/"]),
                with_value("inputs", 1, {"a": 1}), with_value("inputs", 2, "x"),
                with_value("inputs", 0, "/run/\ud800"), with_value("state", 0, [1]),
                with_value("state", 0, {"skeleton": 1}),
                with_value("state", 0, {"tags": {"a": {}}}),
            )
        ),
    ],
)  # fmt: skip
def test_a_malformed_body_is_a_400_and_one_line(client, caplog, body: bytes) -> None:
    answered = ask(client, body)
    assert answered.status_code == 400
    assert answered.text.count("\n") == 1
    assert answered.mimetype == "text/plain"
    assert not caplog.records


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "a/b/c;="])
def test_another_kind_of_body_is_refused(client, kind: str) -> None:
    answered = ask(client, json.dumps(question()).encode(), kind)
    assert (answered.status_code, answered.text.count("\n")) == (400, 1)


def test_a_huge_body_is_refused(client, caplog) -> None:
    answered = ask(client, b" " * (2 << 20))
    assert (answered.status_code, answered.text.count("\n")) == (413, 1)
    assert not caplog.records


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/looks/none.js", 404), ("/_dash-component-suites/x/y.js", 404),
        ("/_dash-component-suites/dash/../../x.js", 404), ("/?%", 200), ("/?%ff=%00&a", 200),
        ("/run/x?" + "a=1&" * 500, 200), ("/?token=x", 200), ("/%ff%00", 200),
    ],
)  # fmt: skip
def test_odd_addresses_are_answered(client, caplog, path: str, status: int) -> None:
    answered = client.get(path, headers=HERE)
    assert answered.status_code == status
    assert status == 200 or answered.text.count("\n") == 1
    assert not caplog.records


def test_there_is_one_thing_to_post_to(client) -> None:
    answered = client.post("/", json={}, headers=HERE)
    assert (answered.status_code, answered.text) == (404, "Nothing can be posted here.\n")


def test_an_error_of_ours_is_one_line_and_logged(tmp_path, monkeypatch, caplog) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("nethook.page.live.app.answer_of", fails)
    client = make_app(Folder(tmp_path)).server.test_client()
    answered = ask(client, json.dumps(question()).encode())
    assert answered.status_code == 500
    assert answered.text == "nethook failed to answer: RuntimeError.\n"
    assert "RuntimeError: broken" in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(question())), value=JSON)
def test_no_body_ends_with_a_500(client, name: str, value: object) -> None:
    body = json.dumps(question(**{name: value})).encode()
    status = ask(client, body).status_code
    assert status == 400 if problem_of(body) else status in (200, 204)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.text(max_size=20), search=st.text(max_size=20), have=JSON)
def test_no_value_ends_with_a_500(client, path: str, search: str, have: object) -> None:
    made = question()
    for each, value in zip(
        (*made["inputs"][:2], made["state"][0]), (path, search, have), strict=True
    ):
        each["value"] = value
    assert ask(client, json.dumps(made).encode()).status_code in (200, 204, 400)
