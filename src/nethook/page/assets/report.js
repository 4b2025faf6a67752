"use strict";
// Draws the figures of a report when they come into view. Everything it needs is in the page.
(() => {
  const root = document.documentElement;
  const { choose, config, fitted, system, theme, themed, traces } = window.nethookDraw;
  const drawn = new Map(); // element -> figure

  function load(element) {
    const figure = JSON.parse(document.getElementById(element.dataset.figure).textContent);
    return { ...figure, data: traces(figure.data) };
  }

  function draw(element) {
    if (drawn.has(element)) return;
    const figure = load(element);
    // What cannot be read when it is narrow is scrolled.
    const least = figure.layout.meta && figure.layout.meta.least;
    if (least && element.clientWidth < least) {
      element.parentElement.style.overflowX = "auto";
      element.style.minWidth = `${least}px`;
    }
    drawn.set(element, figure);
    const layout = fitted(figure, element.clientWidth);
    Plotly.newPlot(element, themed(figure.data), layout, config(element)).then(() => {
      element.dataset.drawn = "yes";
      element.style.height = "";
      // A mark of a finding leads to the finding. The cursor goes through all panels, so a click
      // is about a mark only where it is among the marks.
      element.on("plotly_click", (event) => {
        const strip = figure.layout.yaxis20;
        if (!strip || !event.event) return;
        const { t, b } = { t: 0, b: 0, ...figure.layout.margin };
        const { top, height } = element.getBoundingClientRect();
        const depth = (event.event.clientY - top - t) / (height - t - b);
        if (depth > 1.3 * (1 - strip.domain[0])) return;
        const ids = event.points.map((point) => Array.isArray(point.customdata) && point.customdata[0]);
        const id = ids.find((each) => /^finding-\d+$/.test(each));
        if (id) go(id);
      });
    });
  }

  function redraw() {
    root.dataset.theme = theme();
    for (const [element, figure] of drawn) {
      Plotly.react(element, themed(figure.data), fitted(figure, element.clientWidth), config(element));
    }
  }

  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { observer.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "600px 0px" });

  // Links to a layer open it.
  function go(id) {
    const target = document.getElementById(id);
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView({ block: "start" });
    history.replaceState(null, "", `#${id}`);
  }

  function start() {
    root.dataset.theme = theme();
    for (const element of document.querySelectorAll(".figure")) observer.observe(element);
    document.getElementById("theme").addEventListener("click", () => {
      choose(theme() === "dark" ? "light" : "dark");
      redraw();
    });
    system.addEventListener("change", redraw);
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#"]');
      if (link) { event.preventDefault(); go(link.getAttribute("href").slice(1)); }
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
    window.addEventListener("beforeprint", () => {
      for (const element of document.querySelectorAll(".figure")) if (element.checkVisibility()) draw(element);
    });
    if (location.hash) go(location.hash.slice(1));
    root.dataset.ready = "yes";
  }

  function tabs(list) {
    const buttons = [...list.querySelectorAll('[role="tab"]')];
    const select = (chosenTab, focus) => {
      for (const button of buttons) {
        const on = button === chosenTab;
        button.setAttribute("aria-selected", String(on));
        button.tabIndex = on ? 0 : -1;
        document.getElementById(button.getAttribute("aria-controls")).hidden = !on;
      }
      if (focus) chosenTab.focus();
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

  start();
})();
