"use strict";
// The page's side of nethook ui: asks for what is shown at an address, puts it where it belongs, and
// turns choices, clicks and keys into addresses. It keeps nothing that an address does not say,
// except for the theme.
(() => {
  const root = document.documentElement;
  const draw = window.nethookDraw;
  const figures = window.nethookFigures;
  const CURVES = ["x", "log", "smooth"]; // choices that no server is asked for
  let have = { key: "", tags: {} };
  let state = ""; // what the server says of what is shown
  let looked = ""; // the address that was last scrolled to
  let step = null;
  root.dataset.theme = draw.theme();
  const base = root.dataset.base || ""; // the path that the page is under
  const here = () => location.pathname + location.search;
  const query = () => new URLSearchParams(location.search);

  // Addresses

  function go(address, replace) {
    if (address === here()) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    ask();
    follow();
  }
  window.addEventListener("popstate", () => { ask(); follow(); });

  function setParam(name, value, { keep = false, replace = false } = {}) {
    const asked = query();
    if (value === "" && !keep) asked.delete(name); else asked.set(name, value);
    const text = asked.toString();
    go(location.pathname + (text ? `?${text}` : ""), replace);
    if (CURVES.includes(name)) { if (name === "smooth") figures.again(figures.isCurves); else figures.curvesAgain(); }
  }

  Object.assign(figures.hooks, {
    curves: () => ({ x: query().get("x") || "step", log: query().get("log") || "", smooth: Math.min(99, +(query().get("smooth") || 0)) }),
    step: () => step,
    fold: (value) => setParam("fold", value, { keep: true }),
    go(to, at) {
      const address = new URL(base + to, location.origin);
      if (at !== null) address.searchParams.set("step", at);
      go(address.pathname + address.search);
    },
    finding(id) {
      const first = document.getElementById("go-1");
      if (first) go(`${first.pathname}/findings?n=${id.slice(8)}`);
    },
    drawn(name, frame) { frame.dataset.tag = window.nethookTag(frame); },
  });

  // Asking

  // How wide figures are going to be: most stand in a card.
  function room() {
    const card = document.createElement("div"), figure = document.createElement("div");
    card.className = "card";
    figure.className = "figure";
    card.append(figure);
    document.getElementById("main").append(card);
    const wide = figure.clientWidth;
    card.remove();
    return wide;
  }

  let asking = null;
  async function ask() {
    if (asking) asking.abort();
    const mine = asking = new AbortController();
    try {
      const known = window.Plotly ? have : { ...have, still: { theme: draw.theme(), width: room() } };
      const answer = await fetch(`${base}/view?at=${encodeURIComponent(here())}`, { headers: { "Nethook-Have": JSON.stringify(known) }, signal: mine.signal });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) throw new Error(await answer.text());
      const view = await answer.json();
      if (mine !== asking) return;
      there(true);
      take(view);
    } catch (error) {
      if (error.name !== "AbortError") there(false);
    } finally {
      if (mine === asking) asking = null;
      loadSoon();
    }
  }

  // The server says when something has changed. A page that nobody sees does not listen: browsers
  // have few connections to a server.
  let source = null;
  function follow() {
    if (source) source.close();
    source = null;
    if (document.hidden) return;
    const mine = source = new EventSource(`${base}/events?at=${encodeURIComponent(here())}`);
    mine.onmessage = ({ data }) => { there(true); if (data !== state && !asking) ask(); };
    mine.onerror = () => {
      // One that was closed for good, by a server that had ended, is opened anew.
      if (mine !== source) return;
      there(false);
      if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (mine === source) follow(); }, 1000);
    };
  }
  document.addEventListener("visibilitychange", follow);
  function there(answers) { document.getElementById("gone").hidden = answers; }

  // Putting in what was sent

  function take(view) {
    const page = document.getElementById("page");
    const tags = view.new ? {} : { ...have.tags };
    if (view.new) {
      figures.clear();
      page.innerHTML = view.frame;
    }
    for (const [name, { tag, html }] of Object.entries(view.sections)) {
      tags[name] = tag;
      const section = document.getElementById(name);
      if (!section) continue;
      if (!view.new) morph(section, html);
      section.dataset.tag = tag;
    }
    for (const [name, { tag, figure, still }] of Object.entries(view.figures)) {
      tags[`figure-${name}`] = tag;
      figures.set(name, figure, still);
    }
    have = { key: view.key, tags };
    state = view.state;
    if (step !== view.step) { step = view.step; figures.moveLine(); }
    settle();
    if (document.title !== view.title) {
      document.title = view.title;
      if (view.new) document.getElementById("said").textContent = view.title;
    }
    if (view.new) {
      window.scrollTo({ top: 0, behavior: "instant" });
      const tab = document.querySelector(".bar nav .here"); // on a phone not all fit
      if (tab) tab.scrollIntoView({ block: "nearest", inline: "center", behavior: "instant" });
    }
    focus();
    figures.drawSoon();
    window.nethookSent = (window.nethookSent || 0) + 1; // for benchmarks/page.py
    root.dataset.ready = "yes";
  }

  // The tag of a place when what was sent last stands in it: for benchmarks/page.py.
  window.nethookTag = ({ id }) => {
    if (!id.startsWith("frame-")) return have.tags[id];
    const name = id.slice("frame-".length);
    return `${have.tags[`figure-${name}`]} ${figures.lineOf(figures.figures.get(name)) ? step : ""}`;
  };

  // Changes what is there into what was sent and leaves alone what is the same, so that nothing
  // flickers: what is typed, chosen, unfolded or drawn stays.
  function morph(old, html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    children(old, fresh.content);
  }
  function children(old, fresh) {
    let at = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      const twin = at && alike(at, node) ? at : null;
      if (!twin) {
        const later = node.id ? [...old.childNodes].find((each) => each.id === node.id && alike(each, node)) : null;
        if (later) { old.insertBefore(later, at); one(later, node); continue; }
        old.insertBefore(node, at);
        continue;
      }
      at = at.nextSibling;
      one(twin, node);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
  function one(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) { if (old.data !== fresh.data) old.data = fresh.data; return; }
    const isFigure = old.classList.contains("figure");
    const kept = isFigure ? ["style", "data-drawn", "data-tag", "hidden"] : old.tagName === "DETAILS" ? ["open"] : [];
    for (const { name, value } of [...fresh.attributes]) if (!kept.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes]) if (!kept.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    if (isFigure || old.isEqualNode(fresh)) return;
    if (old.tagName === "INPUT") { if (document.activeElement !== old) old.value = fresh.value; return; }
    children(old, fresh);
  }

  // Choices show what the address says, whatever the browser remembers of a form.
  function settle() {
    for (const select of document.querySelectorAll("select.param")) {
      if (document.activeElement !== select && select.value !== select.dataset.value) select.value = select.dataset.value;
    }
    for (const slider of document.querySelectorAll(".slider.param, .smooth.param")) {
      const input = slider.querySelector("input");
      if (sliding || document.activeElement === input) continue;
      const asked = query().get(slider.dataset.param);
      const value = asked === null || +asked > +input.max ? slider.dataset.value : asked;
      if (input.value !== value) input.value = value;
      slider.querySelector("output").textContent = (+value).toLocaleString("en");
    }
  }
  function focus() {
    const wanted = document.querySelector("[data-focus]");
    const target = wanted && document.getElementById(wanted.dataset.focus);
    if (target && looked !== location.href) {
      looked = location.href;
      target.scrollIntoView({ block: "start", behavior: "instant" });
      target.focus({ preventScroll: true });
    }
    if (!wanted) looked = "";
  }

  // Choices

  let sliding = 0, typing = 0;
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (link && link.protocol === location.protocol && link.host === location.host && !link.download && !event.defaultPrevented && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !link.hash) {
      event.preventDefault();
      go(link.pathname + link.search);
      return;
    }
    const button = event.target.closest("button");
    if (!button) {
      const open = document.querySelector("details.columns[open]");
      if (open && !open.contains(event.target)) open.open = false;
      return;
    }
    if (button.matches(".param")) setParam(button.dataset.param, button.dataset.value, { keep: button.dataset.keep === "yes" });
    if (button.id === "theme") switchTheme();
    if (button.id === "keys" || button.id === "keys-close") showKeys();
  });
  document.addEventListener("change", (event) => {
    const select = event.target.closest("select.param");
    if (select) setParam(select.dataset.param, select.value);
  });
  document.addEventListener("input", (event) => {
    const slider = event.target.closest(".slider.param, .smooth.param");
    if (slider) {
      slider.querySelector("output").textContent = (+event.target.value).toLocaleString("en");
      clearTimeout(sliding);
      const value = slider.matches(".smooth") && event.target.value === "0" ? "" : event.target.value;
      sliding = setTimeout(() => { sliding = 0; setParam(slider.dataset.param, value, { replace: true }); }, 120);
    }
    const typed = event.target.closest(".typed.param");
    if (typed) {
      clearTimeout(typing);
      typing = setTimeout(() => setParam(typed.dataset.param, event.target.value, { replace: true }), 250);
    }
  });

  function redraw() {
    root.dataset.theme = draw.theme();
    figures.again();
  }
  function switchTheme() {
    draw.choose(draw.theme() === "dark" ? "light" : "dark");
    redraw();
  }
  draw.system.addEventListener("change", redraw);
  let narrow = root.clientWidth < 700;
  window.addEventListener("resize", () => {
    if (narrow !== root.clientWidth < 700) { narrow = !narrow; redraw(); }
  });

  // Keys

  function showKeys(on) {
    const box = document.getElementById("keys-box");
    box.hidden = on === undefined ? !box.hidden : !on;
    document.getElementById(box.hidden ? "keys" : "keys-close").focus();
  }
  const press = (id) => { const link = document.getElementById(id); if (link) link.click(); };
  function moveStep(by) {
    const input = document.querySelector(".slider.param input");
    if (!input) return;
    const name = input.closest(".param").dataset.param;
    setParam(name, String(Math.min(+input.max, Math.max(0, +input.value + by))), { replace: true });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, [role=region]")) return;
    const box = document.getElementById("keys-box");
    if (event.key === "Escape" && !box.hidden) showKeys(false);
    else if (/^[1-9]$/.test(event.key)) press(`go-${event.key}`);
    else if (event.key === "[") press("layer-before");
    else if (event.key === "]") press("layer-after");
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") moveStep((event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1));
    else if (event.key === "r") go(`${base}/`);
    else if (event.key === "t") switchTheme();
    else if (event.key === "?") showKeys();
    else return;
    event.preventDefault();
  });

  // plotly.js loads beside everything else. To run it takes a second in which nothing else is done,
  // so that waits until the pictures that came with the first answer are on the screen.
  let loading = false;
  function loadSoon() {
    if (loading) return;
    loading = true;
    const load = () => {
      const script = document.createElement("script");
      script.src = document.getElementById("plotly-js").href;
      script.addEventListener("load", () => figures.drawSoon());
      document.head.append(script);
    };
    // A page in the background has no frames, and nobody who waits for one.
    if (document.hidden) load(); else requestAnimationFrame(() => setTimeout(load, 0));
  }
  window.nethookGo = go; // for benchmarks/page.py
  ask();
  follow();
})();
