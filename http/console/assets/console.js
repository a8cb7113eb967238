// Script of the console. Pages work without it: it draws charts, copies text, and follows a running job.
"use strict";
(() => {
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const compact = new Intl.NumberFormat("en", {notation: "compact"});

  // A histogram of <div data-histogram='[[keys],[counts]]'>, in place of the drawing of the server.
  const histogram = (element) => {
    const [x, y] = JSON.parse(element.dataset.histogram);
    if (!window.uPlot || x.length < 2 || element.dataset.drawn) return;
    element.dataset.drawn = "yes";
    const time = element.dataset.dates === "true";
    element.replaceChildren();
    new uPlot({
      width: element.clientWidth || 260, height: 110, legend: {show: false}, cursor: {drag: {x: false, y: false}, points: {show: false}},
      scales: {x: {time}, y: {range: (u, min, max) => [0, max || 1]}},
      axes: [
        {stroke: color("--muted"), grid: {show: false}, ticks: {show: false}, size: 24, font: "11px system-ui", space: 60, values: time ? undefined : (u, ticks) => ticks.map((v) => compact.format(v))},
        {show: false},
      ],
      series: [{}, {fill: color("--chart"), paths: uPlot.paths.bars({size: [0.9, 60]}), points: {show: false}}],
    }, [time ? x.map((v) => v / 1000) : x, y], element);
  };

  // The rate of a running job since the page was opened.
  let rates = null;
  const followRate = () => {
    const live = document.querySelector("[data-rate]");
    const target = document.querySelector("[data-rate-chart]");
    if (!live || !target || !window.uPlot) return;
    if (!rates) {
      rates = {data: [[], []], plot: null};
      target.hidden = false;
    }
    rates.data[0].push(Date.now() / 1000);
    rates.data[1].push(Number(live.dataset.rate));
    if (rates.data[0].length < 2) return;
    if (rates.plot) return rates.plot.setData(rates.data);
    const box = target.querySelector(".chart");
    rates.plot = new uPlot({
      width: box.clientWidth, height: 150, legend: {show: false},
      axes: [{stroke: color("--muted"), grid: {show: false}}, {stroke: color("--muted"), grid: {stroke: color("--line")}, size: 56}],
      series: [{}, {stroke: color("--chart"), width: 2}],
    }, rates.data, box);
  };

  // What the page says while it cannot refresh itself.
  const unreachable = (text, link) => {
    let banner = document.getElementById("unreachable");
    if (!text) return banner?.remove();
    if (!banner) {
      banner = document.createElement("div");
      banner.id = "unreachable";
      banner.className = "banner bad";
      banner.setAttribute("role", "alert");
      document.getElementById("main").prepend(banner);
    }
    banner.textContent = text;
    if (link) {
      const a = document.createElement("a");
      a.href = new URL("console/sign-in", document.querySelector(".brand").href).pathname;
      a.textContent = link;
      banner.append(" ", a);
    }
  };
  const old = "What you see may be out of date. The page tries again by itself.";
  document.addEventListener("htmx:sendError", () => unreachable("The server cannot be reached. " + old));
  document.addEventListener("htmx:sseError", () => unreachable("The server cannot be reached. " + old));
  document.addEventListener("htmx:sseOpen", () => unreachable(""));
  document.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (status === 401) return unreachable("Your token is no longer valid.", "Sign in again");
    unreachable("The server answers with status " + status + ". " + old);
  });
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) unreachable(""); });

  const enhance = (root) => {
    root.querySelectorAll("[data-histogram]").forEach(histogram);
    root.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = !navigator.clipboard; });
  };

  document.addEventListener("DOMContentLoaded", () => enhance(document));
  document.addEventListener("htmx:afterSettle", (event) => enhance(event.target.parentNode || document));
  document.addEventListener("htmx:sseMessage", followRate);
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    const said = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = said; }, 1500);
  });
  // A search in the values of a facet hides the others at once; without script the server does it.
  document.addEventListener("input", (event) => {
    const field = event.target.closest("[data-filter]");
    if (!field) return;
    const wanted = field.value.toLowerCase();
    document.querySelectorAll("#" + CSS.escape(field.dataset.filter) + " li").forEach((li) => {
      li.hidden = !li.textContent.toLowerCase().includes(wanted);
    });
  });
})();
