"""The page in a browser: every view, by mouse, by keyboard, on a phone, and of hostile runs."""

from __future__ import annotations

import math
import shutil
import urllib.error
import urllib.request

import pytest

from nethook.page.folder import Folder
from nethook.runs.writing.writer import RunWriter
from tests.browser.conftest import Opened, violations
from tests.browser.pages import folder_of_runs, link, served
from tests.figures.shared import hostile, training


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return folder_of_runs(tmp_path_factory.mktemp("page") / "runs")


@pytest.fixture(scope="module")
def site(runs):
    with served(runs) as address:
        yield address


@pytest.fixture(scope="module")
def ids(runs):
    return {entry.name: entry.id for entry in Folder(runs).entries()}


VIEWS = {
    "list": "/",
    "overview": "/run/{training}",
    "layers": "/run/{training}/layer",
    "layer": "/run/{training}/layer?at=block.relu2&step=70",
    "layer-with-parameters": "/run/{training}/layer?at=conv1&of=param_grads%3Aconv1.weight",
    "depth": "/run/{training}/depth?with={changed}&step=60&q=spread",
    "findings": "/run/{training}/findings",
    "model": "/run/{training}/model",
    "health": "/run/{training}/health",
    "compare": "/compare?runs={training}~{changed}~{hostile}",
    "broken": "/run/{broken}",
    "nowhere": "/run/0123456789",
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_drawn_and_accessible(visit, site, ids, name):
    opened = visit(site + VIEWS[name].format(**ids), width=1366, height=850)
    opened.draw_all()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1366
    assert violations(opened.page) == []
    opened.picture(f"page-{name}")


@pytest.mark.parametrize("name", ["list", "overview", "layer", "findings", "compare", "model"])
def test_every_view_is_dark_where_the_system_is(visit, site, ids, name):
    opened = visit(site + VIEWS[name].format(**ids), scheme="dark")
    opened.draw_all()
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert violations(opened.page) == []
    opened.picture(f"page-{name}-dark")


@pytest.mark.parametrize("name", ["list", "overview", "layer", "depth", "findings", "compare"])
def test_every_view_fits_a_phone(visit, site, ids, name):
    opened = visit(site + VIEWS[name].format(**ids), width=390, height=844, touch=True)
    opened.draw_all()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.picture(f"page-{name}-phone")


@pytest.mark.parametrize(
    ("width", "scheme", "view"),
    [(1366, "light", ""), (1366, "dark", ""), (390, "light", ""), (1366, "light", "/depth")],
)
def test_there_is_a_picture_while_the_browser_loads(browser, site, ids, width, scheme, view):
    context = browser.new_context(viewport={"width": width, "height": 850}, color_scheme=scheme)
    held = []
    context.route("**/looks/plotly.js*", lambda route: held.append(route))
    opened = Opened(context.new_page())
    page = opened.page
    page.on("console", lambda m: opened.problems.append(m.text))
    page.goto(link(f"{site}/run/{ids['training']}{view}"), wait_until="commit")
    # Right after the commit there may be no element yet.
    opened.until("document.documentElement?.dataset.ready === 'yes'")
    frames = "[...document.querySelectorAll('.figure')].filter((f) => f.checkVisibility())"
    shown = page.evaluate(f"{frames}.map((f) => [f.dataset.drawn, f.clientHeight])")
    assert shown
    assert {drawn for drawn, _ in shown} == {"still"}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    name = f"{scheme}{'-phone' if width < 700 else ''}{view.replace('/', '-')}"
    opened.picture(f"page-loading-{name}")
    for route in held:
        route.continue_()
    opened.draw_all()
    # What is drawn takes the room of the picture, so that nothing jumps. (On a phone the scale of
    # colours stands below.)
    if width > 700:
        assert page.evaluate(f"{frames}.map((f) => ['still', f.clientHeight])") == shown
    assert page.evaluate("document.querySelectorAll('.figure > svg').length") == 0
    assert opened.problems == []
    context.close()


def test_a_finding_leads_to_its_chart(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}")
    page = opened.page
    page.click(".verdict li:nth-child(2) a")
    page.wait_for_selector("#finding-1.here")
    assert page.url.endswith("/findings?n=1")
    opened.draw_all()
    figure = page.locator("#finding-1 .js-plotly-plot").first
    texts = figure.locator(".annotation-text").all_text_contents()
    assert "threshold 0.01" in texts  # drawn where it belongs
    assert "since step 40" in texts
    # Brought into view; a browser may scroll there smoothly.
    place = "document.querySelector('#finding-1').getBoundingClientRect().top"
    opened.until(f"0 <= {place} && {place} < 200")
    page.click("#finding-0 .chips a")  # and from there to its layer, at the step it began
    page.wait_for_selector("h1 .address")
    assert page.locator("h1 .address").text_content() == "block.relu2"
    assert "step=60" in page.url


def heatmap_box(page):
    """Where the cells of the heatmap are on the screen."""
    cells = page.locator("[id*=heatmap] .nsewdrag").first
    cells.evaluate("(e) => e.scrollIntoView({block: 'center', behavior: 'instant'})")
    page.wait_for_timeout(300)
    return cells.bounding_box()


def test_a_mark_and_a_cell_can_be_clicked(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}", height=1400)
    page = opened.page
    opened.draw_all()
    cells = heatmap_box(page)
    x, y = cells["x"] + cells["width"] * 0.5, cells["y"] + cells["height"] * 0.3
    page.mouse.move(x - 30, y)
    page.mouse.move(x, y, steps=4)
    hover = page.locator("[id*=heatmap] .hoverlayer .hovertext").first
    hover.wait_for()
    assert "block.conv2.weight" in hover.text_content()
    page.mouse.click(x, y)
    page.wait_for_selector("h1 .address")
    assert page.locator("h1 .address").text_content() == "block.conv2"
    step = int(page.url.split("step=")[1].split("&")[0])
    assert 55 <= step <= 64
    assert page.locator(".slider output").text_content() == str(step)
    page.go_back()
    page.wait_for_selector(".verdict")
    opened.draw_all()
    page.evaluate("window.scrollTo({top: 0, behavior: 'instant'})")
    mark = page.locator(".xy20 .point").nth(1).bounding_box()
    page.mouse.move(mark["x"] + 5, mark["y"] + 5)
    page.wait_for_timeout(200)
    page.mouse.click(mark["x"] + 5, mark["y"] + 5)
    page.wait_for_selector("#finding-1.here")


def test_choices_are_in_the_address_and_come_back(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}")
    page = opened.page
    opened.draw_all()
    read = "document.querySelector('[id*=heatmap] .js-plotly-plot').layout.coloraxis.cmax"
    page.select_option("select[data-param=q]", "spread")
    opened.until("location.search.includes('q=spread')")
    page.wait_for_selector("text=Standard deviation of what a layer returned")
    page.wait_for_timeout(300)
    robust = page.evaluate(read)
    page.click("button[data-param=all]")
    opened.until(f"{read} !== {robust}")
    assert page.evaluate(read) > robust
    address = page.url
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    opened.draw_all()
    assert page.url == address
    assert page.input_value("select[data-param=q]") == "spread"
    assert page.get_attribute("button[data-param=all]", "aria-pressed") == "true"
    assert page.evaluate(read) > robust


def test_rows_fold_by_module(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}?q=spread")
    page = opened.page
    opened.draw_all()
    rows = "[...document.querySelector('[id*=heatmap] .js-plotly-plot').data[0].y]"
    assert "block.conv2" in page.evaluate(rows)
    page.click(".folds button[aria-expanded]")
    opened.until(f"{rows}.includes('▸ block (2)')")
    assert "block.conv2" not in page.evaluate(rows)
    cells = heatmap_box(page)
    row = page.evaluate(rows).index("▸ block (2)")
    high = cells["y"] + cells["height"] * (row + 0.5) / len(page.evaluate(rows))
    page.mouse.move(cells["x"] + 50, high)
    page.mouse.click(cells["x"] + 50, high)  # a click on what is folded opens it
    opened.until(f"{rows}.includes('block.conv2')")


def test_the_keyboard_goes_everywhere(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}/layer?at=relu1&step=50")
    page = opened.page
    page.wait_for_selector("h1 .address")
    page.keyboard.press("]")
    opened.until("document.querySelector('h1 .address').textContent === 'block.conv2'")
    assert "step=50" in page.url
    page.keyboard.press("ArrowRight")
    opened.until("document.querySelector('.slider output').textContent === '51'")
    page.keyboard.press("Shift+ArrowLeft")
    opened.until("document.querySelector('.slider output').textContent === '41'")
    page.keyboard.press("[")
    opened.until("document.querySelector('h1 .address').textContent === 'relu1'")
    for key, path in (("4", "/findings"), ("5", "/model"), ("3", "/depth"), ("1", ids["training"])):
        page.keyboard.press(key)
        opened.until(f"location.pathname.endsWith('{path}')")
    page.wait_for_selector(".verdict")
    page.keyboard.press("?")
    assert page.locator("#keys-box").is_visible()
    opened.picture("page-keys")
    page.keyboard.press("Escape")
    assert not page.locator("#keys-box").is_visible()
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("t")
    page.keyboard.press("r")
    page.wait_for_selector(".runs")
    # Everything that can be clicked can be reached by Tab, and is seen when it is.
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "training":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict")


def test_runs_are_chosen_and_compared(visit, site, ids):
    opened = visit(site)
    page = opened.page
    for name in ("training", "changed"):
        page.click(f"button[aria-label='Choose {name} for comparing']")
        page.wait_for_selector(
            f"button[aria-label='Choose {name} for comparing'][aria-pressed=true]"
        )
    page.click("text=Compare 2 runs")
    page.wait_for_selector("text=They diverge at step 61")
    opened.draw_all()
    place = page.locator(".scroll a.address").first
    assert place.text_content() == "conv1"  # the first layer at which they diverge
    place.click()
    page.wait_for_selector("h1 .address")
    assert "step=61" in page.url


def test_the_slider_moves_the_profile(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}/depth?q=silent")
    page = opened.page
    opened.draw_all()
    read = "document.querySelector('.js-plotly-plot').data.map((t) => t.name).join()"
    assert page.evaluate(read) == "step 0,step 119"  # it opens at the latest
    page.locator(".slider input").evaluate(
        "(input) => { input.value = 80; input.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    opened.until(f"{read} === 'step 0,step 80'")
    assert "step=80" in page.url
    page.select_option("select[data-param=with]", ids["changed"])
    opened.until(f"{read} === 'training, step 80,changed, step 80'")


def test_the_step_is_a_line_that_moves(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}/layer?at=conv1&step=50")
    page = opened.page
    opened.draw_all()
    page.evaluate("window.scrollTo({top: 0, behavior: 'instant'})")
    plots = "[...document.querySelectorAll('.js-plotly-plot')]"
    # The last of a figure's lines; those before it mark what happened in the run.
    read = (
        f"{plots}.filter((plot) => plot.layout.shapes).map((plot) => plot.layout.shapes.at(-1).x0)"
    )
    places = page.evaluate(read)
    assert len(places) >= 3
    assert set(places) == {50}
    page.evaluate(f"window.mine = {plots}; window.data = mine.map((plot) => plot.data)")
    page.keyboard.press("ArrowRight")
    opened.until(f"{read}[0] === 51")  # what is in sight at once
    last = "mine.filter((plot) => plot.layout.shapes).at(-1)"
    page.evaluate(f"{last}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    opened.until(f"{read}.every((place) => place === 51)")  # and the rest when it comes near
    assert page.evaluate("mine.every((plot, at) => plot.data === data[at])")  # nothing drawn anew
    page.click("#theme")
    opened.until(f"{last}.data !== data[mine.indexOf({last})]")
    assert page.evaluate(f"{last}.layout.shapes.at(-1).x0") == 51


def test_figures_can_be_kept(visit, site, ids, tmp_path):
    opened = visit(f"{site}/run/{ids['training']}")
    page = opened.page
    opened.draw_all()
    page.locator("[id*=curves]").first.hover()
    with page.expect_download() as kept:
        page.locator("[id*=curves] [data-title^=Download]").first.click()
    path = tmp_path / kept.value.suggested_filename
    kept.value.save_as(path)
    assert path.read_bytes().startswith(b"<svg")
    offered = page.locator("[data-title]").evaluate_all("(all) => all.map((b) => b.dataset.title)")
    assert not [title for title in offered if "hare" in title or "loud" in title]


@pytest.mark.parametrize("view", ["", "/layer", "/depth", "/findings", "/model", "/health"])
def test_a_hostile_run_is_text(visit, site, ids, view):
    opened = visit(f"{site}/run/{ids['hostile']}{view}")
    page = opened.page
    opened.draw_all()
    assert page.locator("main img:not(.spark), main a[href^=javascript], main svg a").count() == 0
    if view == "/layer":
        page.locator("main table a").nth(3).click()
        page.wait_for_selector("h1 .address")
        opened.draw_all()
    if view == "/findings":
        assert "<script>pwned()</script>" in page.locator("main").text_content()  # as letters
    opened.picture(f"page-hostile{view.replace('/', '-')}")


def test_a_hostile_name_of_a_file_is_text(visit, tmp_path):
    name = "<img src=x onerror=pwned()>'\"&%2e%2e"
    shutil.copy(hostile(), tmp_path / f"{name}.db")
    with served(tmp_path) as address:
        opened = visit(address)
        opened.page.click(".runs a")
        opened.page.wait_for_selector(".verdict")
        opened.draw_all()
        assert opened.page.locator("h1").text_content() == name
        assert opened.page.locator("main img:not(.spark)").count() == 0
        opened.leave()


def test_fifty_runs_in_a_folder(visit, tmp_path):
    for number in range(50):
        shutil.copy(training(), tmp_path / f"run-{number:02d}.db")
    with served(tmp_path) as address:
        opened = visit(address)
        page = opened.page
        opened.until("!document.body.textContent.includes('reading …')", 60)
        assert page.locator(".runs tbody tr").count() == 50
        assert page.locator(".runs .spark").count() == 50
        opened.picture("page-fifty")
        page.fill("input[type=search]", "RUN-4")
        opened.until("document.querySelectorAll('.runs tbody tr').length === 10")
        assert "find=RUN-4" in page.url
        page.click("text=run-43")
        page.wait_for_selector(".verdict")
        opened.leave()


def test_another_name_is_refused(site):
    request = urllib.request.Request(f"{site}/", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 403
    refused.value.close()


def test_the_browser_refuses_what_the_page_may_not(visit, site, ids):
    """The policy holds even where escaping would fail."""
    opened = visit(f"{site}/run/{ids['training']}")
    opened.page.evaluate(
        """() => { const bad = document.createElement('div');
        bad.innerHTML = '<img src=x onerror="window.ran = 1">'; document.body.append(bad);
        const script = document.createElement('script'); script.textContent = 'window.ran = 1';
        document.body.append(script); }"""
    )
    opened.page.wait_for_timeout(300)
    assert opened.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in problem for problem in opened.problems)
    opened.problems.clear()


def test_curves_are_smoothed_scaled_and_placed_in_time(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}")
    page = opened.page
    opened.draw_all()
    plot = "document.querySelector('#frame-curves .graph')"
    lines = f"{plot}._fullData.filter((t) => t.name === 'training')"
    assert page.evaluate(f"{lines}.length") == 1
    before = page.evaluate(f"[...{lines}[0].y]")
    page.locator(".smooth input").evaluate(
        "(input) => { input.value = 80; input.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    opened.until(f"{lines}.length === 2")
    assert "smooth=80" in page.url
    raw, smooth = page.evaluate(f"{lines}.map((t) => [...t.y])")
    assert raw == before  # what was recorded is still there, faint
    mean = total = 0.0
    for value, shown in zip(raw, smooth, strict=True):
        mean, total = 0.8 * mean + 0.2 * value, 0.8 * total + 0.2
        assert shown == pytest.approx(mean / total, rel=1e-6)
    page.select_option("select[data-param=log]", "log")
    opened.until(f"{plot}._fullLayout.yaxis.type === 'log'")
    page.select_option("select[data-param=x]", "time")
    opened.until(f"{plot}._fullLayout.xaxis.title.text === 'seconds'")
    address = page.url
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    opened.draw_all()
    assert page.url == address
    assert page.evaluate(f"{plot}._fullLayout.xaxis.title.text") == "seconds"
    assert page.evaluate(f"{lines}.length") == 2


def test_a_zoom_fetches_finer_numbers(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}")
    page = opened.page
    opened.draw_all()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    plot = "document.querySelector('#frame-curves .graph')"
    page.evaluate(f"Plotly.relayout({plot}, {{'xaxis.range': [40, 60]}})")
    line = f"{plot}._fullData.find((t) => t.name === 'training')"
    opened.until(f"{line}.x.length === 23")  # one beyond each end
    assert sum("/fine?run=" in url for url in asked) == 1
    assert page.evaluate(f"{plot}.layout.xaxis.range") == [40, 60]
    page.evaluate(f"Plotly.relayout({plot}, {{'xaxis.autorange': true}})")
    opened.until(f"{line}.x.length === 120")


def test_the_cursor_reads_in_words(visit, site, ids):
    opened = visit(f"{site}/run/{ids['training']}", height=1000)
    page = opened.page
    opened.draw_all()
    page.evaluate("window.scrollTo({top: 0, behavior: 'instant'})")
    box = page.locator("#frame-curves .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 - 20, box["y"] + 30)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30, steps=3)
    page.wait_for_selector(".hoverlayer .legend")
    text = page.locator(".hoverlayer .legend").first.text_content()
    assert text.startswith("step ")
    for words in ("training loss", "learning rate 0.", "gradient norm, as used"):
        assert words in text
    opened.picture("page-hover")


def test_runs_are_sorted_and_seeds_are_a_band(visit, tmp_path):
    for rate in ("0.1", "0.01"):
        for seed in range(3):
            write_run(tmp_path / f"lr{rate}-{seed}.db", rate, seed)
    with served(tmp_path) as address:
        opened = visit(address, width=1366)
        page = opened.page
        names = "[...document.querySelectorAll('.runs .address')].map((a) => a.textContent).join()"
        page.click("th button:text-is('loss')")
        lowest, *_, highest = sorted(LAST, key=LAST.__getitem__)
        opened.until(f"{names}.startsWith('{lowest}')")
        page.click("th button:has-text('loss')")
        opened.until(f"{names}.startsWith('{highest}')")
        assert "sort=-loss" in page.url
        opened.picture("page-sweep")
        page.click("text=groups of seeds")
        page.wait_for_selector("#frame-groups .graph")
        opened.draw_all()
        assert violations(page) == []
        opened.picture("page-seeds")
        opened.leave()


LAST: dict[str, float] = {}  # the last loss of each run


def write_run(path, rate: str, seed: int) -> None:
    with RunWriter(path) as writer:
        writer.info(command=["python", "train.py", "--lr", rate, f"--seed={seed}"])
        for step in range(200):
            wave = 0.05 * math.sin(step / 5 + seed)
            LAST[path.stem] = float(rate) + (1 + seed / 10) / (1 + step / 20) + wave
            writer.log("loss", LAST[path.stem], step)


@pytest.mark.parametrize(
    ("info", "word", "badge"),
    [
        ({"ended": {"error": "RuntimeError: mat1 and mat2 shapes cannot be multiplied"}}, "Crashed",
         "crashed"),
        ({"ended": {"error": "KeyboardInterrupt", "interrupted": True}}, "Interrupted",
         "interrupted"),
        ({"diagnosis": {"checks": 53}, "totals": {"steps": 3}}, "Too early to tell", "finished"),
        ({"diagnosis": {"checks": 53}, "totals": {"steps": 200}}, "No problems found", "finished"),
    ],
)  # fmt: skip
def test_every_state_is_said(visit, tmp_path, info, word, badge):
    write_run(tmp_path / "run.db", "0.1", 0)
    with RunWriter(tmp_path / "run.db", resume=True) as writer:
        writer.info(**info)
    with served(tmp_path / "run.db") as address:
        opened = visit(address)
        page = opened.page
        assert page.locator(".verdict .word").text_content() == word
        assert page.locator(".state").text_content().strip().startswith(badge)
        assert page.locator(".verdict.good").count() == (word == "No problems found")
        if word == "Crashed":
            assert "mat1 and mat2 shapes" in page.locator("#verdict").text_content()
        opened.draw_all()
        assert violations(page) == []
        opened.picture(f"page-{word.lower().replace(' ', '-')}")
        opened.leave()
