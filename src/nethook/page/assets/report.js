"use strict";
// The report's side: figures from the file, tabs, folds, filters and links. Nothing is asked for.
(() => {
  const root = document.documentElement;
  const draw = window.nethookDraw;
  const figures = window.nethookFigures;
  const chosen = { x: "step", log: "", smooth: 0 }; // how curves are shown

  // Links to a layer open it.
  function go(id) {
    const target = document.getElementById(id);
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView({ block: "start" });
    history.replaceState(null, "", `#${id}`);
  }
  Object.assign(figures.hooks, { finding: go, curves: () => chosen });

  function tabs(list) {
    const buttons = [...list.querySelectorAll('[role="tab"]')];
    const select = (tab, focus) => {
      for (const button of buttons) {
        const on = button === tab;
        button.setAttribute("aria-selected", String(on));
        button.tabIndex = on ? 0 : -1;
        document.getElementById(button.getAttribute("aria-controls")).classList.toggle("off", !on);
      }
      if (focus) tab.focus();
      figures.drawSoon();
    };
    list.addEventListener("click", (event) => {
      const button = event.target.closest('[role="tab"]');
      if (button) select(button);
    });
    list.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      const at = buttons.indexOf(document.activeElement);
      select(buttons[(at + move + buttons.length) % buttons.length], true);
    });
  }

  function redraw() {
    root.dataset.theme = draw.theme();
    figures.again();
  }
  root.dataset.theme = draw.theme();
  for (const element of document.querySelectorAll(".figure")) {
    const data = document.getElementById(element.dataset.figure);
    figures.set(element.id.slice("frame-".length), JSON.parse(data.textContent));
  }
  figures.drawSoon();
  document.getElementById("theme").addEventListener("click", () => {
    draw.choose(draw.theme() === "dark" ? "light" : "dark");
    redraw();
  });
  draw.system.addEventListener("change", redraw);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) { event.preventDefault(); go(link.getAttribute("href").slice(1)); }
  });
  document.addEventListener("change", (event) => {
    const select = event.target.closest("select.param");
    if (select) { chosen[select.dataset.param] = select.value; figures.curvesAgain(); }
  });
  document.addEventListener("input", (event) => {
    const slider = event.target.closest(".smooth.param");
    if (!slider) return;
    slider.querySelector("output").textContent = event.target.value;
    chosen.smooth = +event.target.value;
    figures.again(figures.isCurves);
  });
  for (const list of document.querySelectorAll('[role="tablist"]')) tabs(list);
  const filter = document.getElementById("filter");
  const layers = [...document.querySelectorAll("details.layer")];
  if (filter) filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const layer of layers) layer.hidden = !layer.dataset.name.toLowerCase().includes(wanted);
  });
  const all = document.getElementById("open-all");
  if (all) all.addEventListener("click", () => {
    const open = layers.some((layer) => !layer.open);
    for (const layer of layers) layer.open = open;
    all.textContent = open ? "close all" : "open all";
  });
  if (location.hash) go(location.hash.slice(1));
  root.dataset.ready = "yes";
})();
