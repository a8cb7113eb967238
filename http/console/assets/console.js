// Script of the console. Pages work without it: it draws charts, copies text, and follows a running job.
"use strict";
(() => {
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // A number with an SI prefix: 100G. The compact notation of Intl is 100B, which reads as bytes.
  const compact = (n) => {
    const power = Math.min(5, Math.max(0, Math.floor(Math.log10(Math.abs(n) || 1) / 3)));
    return Number((n / 1000 ** power).toPrecision(4)) + ["", "k", "M", "G", "T", "P"][power];
  };

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
        {stroke: color("--muted"), grid: {show: false}, ticks: {show: false}, size: 24, font: "11px system-ui", space: 60, values: time ? undefined : (u, ticks) => ticks.map((v) => compact(v))},
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

  // Two sliders above the fields of a range, in step with them. A slider at its end is no bound.
  const slider = (range) => {
    if (range.dataset.low === undefined || range.previousElementSibling?.className === "slider") return;
    const {low, high, step} = range.dataset, dates = range.dataset.dates === "true";
    const text = (n) => dates ? new Date(n).toISOString().slice(0, 10) : String(step === "any" ? Number(n.toPrecision(6)) : n);
    const value = (field, end) => field.value === "" ? Number(end) : dates ? Date.parse(field.value) : Number(field.value);
    const box = document.createElement("div");
    box.className = "slider";
    const fields = [...range.querySelectorAll("input")], ends = [low, high];
    const thumbs = fields.map((field, i) => {
      const thumb = document.createElement("input");
      Object.assign(thumb, {type: "range", id: "slider." + field.name, min: low, max: high, step});
      thumb.setAttribute("aria-label", field.getAttribute("aria-label"));
      box.append(thumb);
      return thumb;
    });
    const show = () => {
      const part = (n) => (100 * (n - low) / (high - low)) + "%";
      thumbs.forEach((thumb) => thumb.setAttribute("aria-valuetext", text(Number(thumb.value))));
      box.style.setProperty("--from", part(thumbs[0].value));
      box.style.setProperty("--to", part(thumbs[1].value));
      // Both at the upper end: the lower bound stays on top, so that it can be moved back.
      thumbs[0].classList.toggle("top", Number(thumbs[0].value) > (Number(low) + Number(high)) / 2);
    };
    const follow = () => {
      thumbs.forEach((thumb, i) => { thumb.value = value(fields[i], ends[i]); });
      show();
    };
    thumbs.forEach((thumb, i) => {
      thumb.addEventListener("input", () => {
        const other = Number(thumbs[1 - i].value);
        if (i === 0 ? Number(thumb.value) > other : Number(thumb.value) < other) thumb.value = other;
        fields[i].value = Number(thumb.value) === Number(ends[i]) ? "" : text(Number(thumb.value));
        show();
      });
      thumb.addEventListener("change", () => range.closest("form").dispatchEvent(new Event("slid")));
      fields[i].addEventListener("input", follow);
    });
    follow();
    range.before(box);
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
      a.href = new URL("console/sign-in", document.querySelector(".brand").href).pathname + "?next=" + encodeURIComponent(location.pathname + location.search);
      a.textContent = link;
      banner.append(" ", a);
    }
  };
  const old = "What you see may be out of date.";
  // Only what refreshes itself tries again without the reader.
  const again = (element) => element?.getAttribute("hx-trigger")?.startsWith("every") || element?.hasAttribute("sse-connect")
    ? " The page tries again by itself." : " Try again.";
  // What the error page of a response says.
  const reasonOf = (html) => [...new DOMParser().parseFromString(html, "text/html").querySelectorAll("main .banner > *")]
    .map((part) => part.textContent.trim()).filter(Boolean).join(" ");
  const failed = (status, html, element) => {
    if (status === 401) return unreachable("Your token is no longer valid. " + old, "Sign in again");
    if (status === 404) return unreachable("What this page shows does not exist any more. You see its last state.");
    const reason = reasonOf(html) || "The server answers with status " + status + ".";
    unreachable(status < 500 ? reason : reason + " " + old + again(element));
  };
  document.addEventListener("htmx:sendError", (event) => unreachable("The server cannot be reached. " + old + again(event.detail.elt)));
  // A stream does not say why it ended: the page itself does.
  document.addEventListener("htmx:sseError", async (event) => {
    try {
      const page = await fetch(location.href, {cache: "no-store"});
      if (!page.ok) failed(page.status, await page.text(), event.target);
    } catch {
      unreachable("The server cannot be reached. " + old + again(event.target));
    }
  });
  document.addEventListener("htmx:sseOpen", () => unreachable(""));
  document.addEventListener("htmx:responseError", (event) => failed(event.detail.xhr.status, event.detail.xhr.responseText, event.detail.elt));
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) unreachable(""); });

  // A screen reader reads what changes in an element that stays: the number of documents, and the state of a job.
  const announce = () => {
    const said = document.getElementById("said");
    const news = document.getElementById("total")?.textContent ?? document.querySelector("[data-state] [role=status]")?.textContent ?? "";
    if (said.textContent !== news) said.textContent = news;
  };

  const enhance = (root) => {
    root.querySelectorAll("[data-histogram]").forEach(histogram);
    root.querySelectorAll(".range").forEach(slider);
    root.querySelectorAll("[data-copy], [data-copy-address]").forEach((button) => { button.hidden = !navigator.clipboard; });
  };

  document.addEventListener("DOMContentLoaded", () => enhance(document));
  // The focus stays on the same link, button, field or region when its part of the page is replaced.
  const sameOf = (e) => [e.tagName, e.id, e.getAttribute("href") ?? e.form?.getAttribute("action"), e.getAttribute("aria-label")].join("|");
  let focused = null;
  document.addEventListener("htmx:beforeSwap", () => {
    const e = document.activeElement;
    focused = e && e !== document.body ? {same: sameOf(e), text: e.textContent} : null;
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    enhance(event.target.parentNode || document);
    announce();
    if (!focused || document.activeElement !== document.body) return;
    const alike = [...document.querySelectorAll("#main :is(a, button, input, select, textarea, summary, [tabindex])")].filter((e) => sameOf(e) === focused.same);
    (alike.find((e) => e.textContent === focused.text) ?? alike[0])?.focus({preventScroll: true});
  });
  document.addEventListener("htmx:sseMessage", () => { followRate(); announce(); });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-address]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(source ? source.value ?? source.textContent : location.href);
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
