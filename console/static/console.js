// What the pages cannot do by themselves: the viewer's time zone, keys, copying, charts, following.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const remembered = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const remember = (name, value) => { try { localStorage.setItem(name, value); } catch { /* private mode */ } };

  // --- Times ---------------------------------------------------------------------------------
  const zone = document.getElementById("zone");
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const two = (number, width = 2) => String(number).padStart(width, "0");
  const local = (moment) =>
    `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ` +
    `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.` +
    two(moment.getMilliseconds(), 3);
  const showTimes = (root) => {
    const isLocal = remembered("zone") === "local";
    for (const time of all("time", root)) {
      const utc = time.dateTime.replace("T", " ").replace("Z", "");
      const theirs = local(new Date(time.dateTime));
      const [day, clock] = (isLocal ? theirs : utc).split(" ");
      const span = document.createElement("span");
      span.className = "day";
      span.textContent = `${day} `;
      time.replaceChildren(span, clock);
      time.title = isLocal ? `${utc} UTC` : `${theirs} ${here}`;
    }
    zone.textContent = isLocal ? `Times in ${here}` : "Times in UTC";
    zone.setAttribute("aria-pressed", String(isLocal));
  };
  zone.addEventListener("click", () => {
    remember("zone", remembered("zone") === "local" ? "utc" : "local");
    showTimes(document);
  });

  // --- Copying -------------------------------------------------------------------------------
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy it";
    }
    setTimeout(() => { button.textContent = said; }, 1500);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close-drawer]")) {
      event.preventDefault();
      const drawer = document.getElementById("drawer");
      drawer.replaceChildren();
      all("tr.chosen").forEach((row) => row.classList.remove("chosen"));
      history.replaceState(null, "", drawer.dataset.home);
    }
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[hx-target='#drawer']");
    if (link) {
      all("tr.chosen").forEach((row) => row.classList.remove("chosen"));
      link.closest("tr")?.classList.add("chosen");
    }
  });

  // --- Keys ----------------------------------------------------------------------------------
  const keys = document.getElementById("keys");
  document.getElementById("keys-button").addEventListener("click", () => keys.showModal());
  let goes = 0;
  const move = (step) => {
    const links = all("table.rows tbody tr").map((row) => row.querySelector("a")).filter(Boolean);
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
    next?.focus();
  };
  const actions = {
    "/": () => (document.querySelector("input[type=search]") ?? document.querySelector("main input"))?.focus(),
    "?": () => keys.showModal(),
    j: () => move(1),
    k: () => move(-1),
    n: () => document.querySelector("a[rel=next]")?.click(),
    p: () => document.querySelector("a[rel=prev]")?.click(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (goes && Date.now() - goes < 1200) {
      goes = 0;
      const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); return; }
    }
    if (event.key === "g") { goes = Date.now(); return; }
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  });

  // --- Charts --------------------------------------------------------------------------------
  const POINTS_MAX = 300;
  const LINES_MAX = 6;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const count = (value) => value == null ? "" : value.toLocaleString("en", { maximumFractionDigits: 1 });
  // What uPlot takes for the span of a single point is some years.
  const span = (self) => {
    const times = self.data[0];
    const last = times[times.length - 1] ?? Date.now() / 1000;
    return [Math.min(times[0] ?? last, last - 60), last];
  };
  const clock = (seconds) => {
    const moment = new Date(seconds * 1000);
    return remembered("zone") === "local" ? local(moment).slice(11, 19) : moment.toISOString().slice(11, 19);
  };
  const startChart = (figure) => {
    if (figure.dataset.started || !window.uPlot) return;
    figure.dataset.started = "yes";
    const plot = figure.querySelector(".plot");
    const data = [[], []];
    const label = figure.dataset.label;
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const lines = new Map();  // of partitions and the like, by name, each with its item below the chart
    const list = figure.querySelector(".lines");
    const addLine = (name) => {
      const number = lines.size + 1;
      const item = document.createElement("li");
      item.className = `line-${number}`;
      list.append(item);
      lines.set(name, item);
      data.push(data[0].slice(1).map(() => null));
      chart.addSeries({ label: name, stroke: colour(`--line-${number}`), width: 1.5, points: { show: false } });
    };
    const chart = new uPlot({
      width: plot.clientWidth, height: 170,
      cursor: { y: false }, legend: { show: false },
      scales: { x: { range: span }, y: { range: (self, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
      axes: [{ ...axis, space: 90, values: (self, ticks) => ticks.map(clock) }, { ...axis, size: 64, values: (self, ticks) => ticks.map(count) }],
      series: [{}, { label, stroke: colour("--series"), width: 2, fill: colour("--series") + "22", points: { show: false } }],
    }, data, plot);
    new ResizeObserver(() => chart.setSize({ width: plot.clientWidth, height: 170 })).observe(plot);
    const look = async () => {
      if (!figure.isConnected) { chart.destroy(); return; }
      if (!document.hidden) {
        try {
          const answer = await fetch(figure.dataset.chart, { headers: { accept: "application/json" } });
          if (!answer.ok) throw new Error();
          const found = await answer.json();
          data[0].push(Date.now() / 1000);
          data[1].push(found[figure.dataset.series]);
          if (list) {
            const now = new Map(found.lines);
            for (const [name, value] of now) if (value && !lines.has(name) && lines.size < LINES_MAX) addLine(name);
            [...lines].forEach(([name, item], index) => {
              data[index + 2].push(now.get(name) ?? null);
              item.textContent = `${name} ${count(now.get(name)) || "–"}`;
            });
          }
          if (data[0].length > POINTS_MAX) data.forEach((each) => each.shift());
          chart.setData(data);
          figure.querySelector(".chart-now").textContent = `${count(found[figure.dataset.series])} ${label}`;
          const busiest = figure.querySelector(".busiest");
          if (busiest && found.topics) {
            busiest.replaceChildren(...found.topics.map(([name, rate]) => {
              const item = document.createElement("li");
              const link = document.createElement("a");
              link.href = `/topics/${encodeURIComponent(name)}`;
              link.textContent = name;
              item.append(link, ` ${count(rate)}/s`);
              return item;
            }));
          }
        } catch {
          figure.querySelector(".chart-now").textContent = "No answer; trying again.";
        }
      }
      setTimeout(look, Number(figure.dataset.every));
    };
    look();
  };

  // --- Following -----------------------------------------------------------------------------
  const ROWS_MAX = 500;
  const pause = document.getElementById("pause");
  let isPaused = false;
  pause?.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(isPaused));
    document.querySelector(".live")?.classList.toggle("off", isPaused);
  });
  document.addEventListener("htmx:sseBeforeMessage", (event) => { if (isPaused) event.preventDefault(); });
  document.addEventListener("htmx:sseMessage", () => {
    for (const body of all(".follow-rows")) {
      while (body.rows.length > ROWS_MAX) body.deleteRow(-1);
      document.getElementById("follow-empty")?.toggleAttribute("hidden", body.rows.length > 0);
    }
  });

  // --- htmx ----------------------------------------------------------------------------------
  document.addEventListener("htmx:beforeRequest", (event) => {
    // What nobody looks at is not read anew.
    const trigger = event.detail.elt.getAttribute("hx-trigger") ?? "";
    if ((document.hidden || isPaused) && trigger.includes("every")) event.preventDefault();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    // A page that cannot be kept fresh says so, and goes on trying.
    const live = document.querySelector(".live");
    // What asked may have been replaced by the answer; the event is its parent's then.
    if (live && event.detail.requestConfig.elt.getAttribute("hx-trigger")?.startsWith("every")) {
      live.classList.toggle("off", !event.detail.successful);
      live.textContent = event.detail.successful ? "live" : "no answer; trying again";
    }
  });
  // What was asked for in vain, it is said at the top of the page, until it is answered.
  const failure = document.getElementById("failure");
  const adviceOf = (html) =>
    new DOMParser().parseFromString(html, "text/html").querySelector(".empty.page p")?.textContent;
  document.addEventListener("htmx:afterRequest", (event) => {
    const { successful, target, xhr } = event.detail;
    if (successful && failure.dataset.of !== target.id) return;
    failure.dataset.of = target.id;
    failure.hidden = successful;
    failure.textContent = successful ? "" :
      adviceOf(xhr.responseText) ?? "The console does not answer. If it was ended, start it again with odradek console.";
  });
  // A page that nobody could answer is asked for again until somebody can.
  const askAgain = () => setTimeout(async () => {
    try {
      if (!document.hidden && (await fetch(location.href)).ok) { location.reload(); return; }
    } catch { /* the console does not answer either */ }
    askAgain();
  }, 3000);
  document.addEventListener("htmx:load", (event) => showTimes(event.detail.elt));
  document.addEventListener("DOMContentLoaded", () => {
    showTimes(document);
    all("[data-chart]").forEach(startChart);
    if (document.querySelector("[data-again]")) askAgain();
    all("select[data-submits]").forEach((each) => each.addEventListener("change", () => each.form.requestSubmit()));
  });
})();
