// SPDX-License-Identifier: BSD-2-Clause
//
// Draws the data of the page (tools/page_data.cpp) with Chart.js. Nothing is loaded, and no text of the data is ever
// taken for HTML.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  const kEmulated = "emulated: ratios only";

  // --- small things ----------------------------------------------------------------------------------------------------

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  };

  const digits = (value) => (value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0));
  const plain = (value) => String(Number(value.toPrecision(3)));

  const time = (ns) => {
    if (ns === null) return "-";
    if (ns < 1e3) return `${Math.round(ns)} ns`;
    if (ns < 999.5e3) return `${digits(ns / 1e3)} µs`;
    if (ns < 999.5e6) return `${digits(ns / 1e6)} ms`;
    return `${digits(ns / 1e9)} s`;
  };
  const roundTime = (ns) =>
    ns < 1e3 ? `${plain(ns)} ns` : ns < 1e6 ? `${plain(ns / 1e3)} µs` : ns < 1e9 ? `${plain(ns / 1e6)} ms` : `${plain(ns / 1e9)} s`;
  const count = (value) => {
    if (value < 9999.5) return plain(Math.round(value * 10) / 10);
    if (value < 999.5e3) return `${digits(value / 1e3)}k`;
    if (value < 999.5e6) return `${digits(value / 1e6)}M`;
    return `${digits(value / 1e9)}G`;
  };
  const shortCount = (value) => count(value).replace(/\.0+(?=[kMG]?$)/, "");
  const small = (value) => (value === 0 ? "0" : value < 0.001 ? value.toExponential(1) : plain(value));
  const percent = (value) => `${plain(value)} %`;
  const isPowerOfTen = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
  const plural = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;

  // --- colours ---------------------------------------------------------------------------------------------------------

  const root = document.documentElement;
  const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // An algorithm has a colour, a back end a kind of line.
  const lockColour = (lock) => variable(`--lock-${lock}`) || variable("--lock-other");
  const lockDash = (backend) => ({ native: [], ipi: [6, 4], xen: [2, 3], kvm: [], xen_pv: [2, 3] })[backend] ?? [9, 3, 2, 3];
  const lockWidth = (backend) => (backend === "native" || backend === "ipi" ? 1.75 : 3);
  const faded = (colour) => `${colour}99`;

  // --- plugins: what Chart.js has not ----------------------------------------------------------------------------------

  // Mean +- standard deviation as a whisker, each single value as a dot.
  const spread = {
    id: "spread",
    afterDatasetsDraw(chart) {
      const context = chart.ctx;
      const horizontal = chart.options.indexAxis === "y";
      chart.data.datasets.forEach((dataset, index) => {
        if (!dataset.samples || !chart.isDatasetVisible(index)) return;
        const scale = horizontal ? chart.scales.x : chart.scales.y;
        const pixel = (value) => scale.getPixelForValue(Math.min(Math.max(value, scale.min), scale.max));
        chart.getDatasetMeta(index).data.forEach((bar, i) => {
          const sample = dataset.samples[i];
          if (!sample) return;
          const across = horizontal ? bar.y : bar.x;
          const line = (along, side, alongEnd, sideEnd) => {
            context.beginPath();
            context.moveTo(...(horizontal ? [along, side] : [side, along]));
            context.lineTo(...(horizontal ? [alongEnd, sideEnd] : [sideEnd, alongEnd]));
            context.stroke();
          };
          // No cap where the axis ends before the whisker does.
          const cap = (value) => {
            const along = pixel(value);
            if (value >= scale.min && value <= scale.max) line(along, across - 4, along, across + 4);
          };
          context.save();
          context.fillStyle = variable("--text");
          context.globalAlpha = 0.45;
          if (dataset.dots !== false)
            for (const value of sample.values) {
              context.beginPath();
              const along = pixel(value);
              context.arc(horizontal ? along : across, horizontal ? across : along, 2, 0, 2 * Math.PI);
              context.fill();
            }
          if (sample.stdev !== null && sample.values.length > 1) {
            context.globalAlpha = 1;
            context.lineWidth = 1.25;
            context.strokeStyle = dataset.dots === false ? dataset.borderColor : variable("--text");
            line(pixel(sample.mean - sample.stdev), across, pixel(sample.mean + sample.stdev), across);
            cap(sample.mean - sample.stdev);
            cap(sample.mean + sample.stdev);
          }
          context.restore();
        });
      });
    },
  };

  // The value of each bar in figures, beyond everything that is drawn for it.
  const values = {
    id: "values",
    afterDatasetsDraw(chart) {
      const context = chart.ctx;
      chart.data.datasets.forEach((dataset, index) => {
        if (!dataset.texts || !chart.isDatasetVisible(index)) return;
        context.save();
        context.fillStyle = variable("--muted");
        context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
        context.textBaseline = "middle";
        chart.getDatasetMeta(index).data.forEach((bar, i) => {
          const reach = dataset.reach?.[i] ?? 0;
          const x = Math.max(bar.x, chart.scales.x.getPixelForValue(Math.min(reach, chart.scales.x.max)));
          context.fillText(dataset.texts[i], x + 7, bar.y);
        });
        context.restore();
      });
    },
  };

  // A line at one value of the x axis, with what it means.
  const guide = {
    id: "guide",
    afterDatasetsDraw(chart, _, options) {
      if (typeof options.value !== "number") return;
      const context = chart.ctx;
      const x = chart.scales.x.getPixelForValue(options.value);
      const { top, bottom } = chart.chartArea;
      context.save();
      context.strokeStyle = variable("--text");
      context.setLineDash([4, 4]);
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, bottom);
      context.stroke();
      context.fillStyle = variable("--text");
      context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      context.textAlign = "center";
      context.fillText(options.text, x, top - 6);
      context.restore();
    },
  };

  Chart.register(spread, values, guide);
  Chart.defaults.animation = false;
  Chart.defaults.responsive = true;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.font.family = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

  // --- cards -----------------------------------------------------------------------------------------------------------

  // Each chart is made anew when the theme changes: `configuration` reads the colours.
  const charts = [];

  const card = (parent, title, text, emulated, height, configuration) => {
    const canvas = element("canvas", { role: "img", "aria-label": `${title}. The numbers are in the table of figures.` });
    const plot = element("div", { class: "plot", style: null }, canvas);
    plot.style.height = `${height}px`;
    parent.append(
      element(
        "section",
        { class: "card" },
        element("div", { class: "head" }, element("h3", {}, title), emulated ? element("span", { class: "mark" }, kEmulated) : null),
        element("p", {}, text),
        plot,
      ),
    );
    const entry = { canvas, configuration, chart: null };
    charts.push(entry);
    return entry;
  };

  const note = (parent, title, text) =>
    parent.append(element("section", { class: "card" }, element("div", { class: "head" }, element("h3", {}, title)), element("p", {}, text)));

  const draw = () => {
    Chart.defaults.color = variable("--muted");
    Chart.defaults.borderColor = variable("--line");
    for (const entry of charts) {
      if (entry.chart) entry.chart.destroy();
      entry.chart = new Chart(entry.canvas, entry.configuration());
    }
  };

  const axis = (title, more = {}) => ({ title: { display: true, text: title }, ...more });
  // Names with the line's colour and dashes, which say algorithm and back end.
  const lineLegend = () => ({
    position: "bottom",
    labels: { usePointStyle: true, pointStyle: "line", pointStyleWidth: 28, boxHeight: 6, color: variable("--text"), padding: 8 },
  });
  const barHeight = (rows, datasets = 1) => 90 + rows * (12 + 14 * datasets);

  // Horizontal bars, one for each lock: the names can be read, and figures stand beside the bars.
  const bars = (locks, options) => () => {
    const samples = locks.map(options.sample);
    const reach = samples.map((sample) =>
      sample ? Math.max(sample.mean + (sample.stdev ?? 0), ...sample.values) : 0,
    );
    return {
      type: "bar",
      data: {
        labels: locks.map((lock) => lock.name),
        datasets: [
          {
            label: options.title,
            data: samples.map((sample) => (sample ? sample.mean : null)),
            samples,
            reach,
            texts: samples.map((sample) =>
              sample ? options.text(sample.mean) + (sample.stdev === null ? "" : ` ± ${options.text(sample.stdev)}`) : "-",
            ),
            backgroundColor: locks.map((lock) => faded(lockColour(lock.lock))),
            borderColor: locks.map((lock) => lockColour(lock.lock)),
            borderWidth: 1,
            maxBarThickness: 18,
          },
        ],
      },
      options: {
        indexAxis: "y",
        layout: { padding: { right: 8 } },
        scales: {
          x: axis(options.axis, {
            min: 0,
            suggestedMax: Math.max(...reach, options.least ?? 0) * 1.3,
            ticks: { callback: options.tick, maxRotation: 0 },
          }),
          y: { grid: { display: false }, ticks: { autoSkip: false, color: variable("--text") } },
        },
        plugins: {
          legend: { display: false },
          tooltip: {
            callbacks: {
              label: (item) => `${item.dataset.texts[item.dataIndex]} (${plural(samples[item.dataIndex]?.values.length ?? 0, "repetition")})`,
            },
          },
        },
      },
    };
  };

  // --- cumulative distributions ----------------------------------------------------------------------------------------

  let tail = false;

  // In the tail's scale each step up is one nine more: 90 %, 99 %, 99.9 %. All values lie below the last one, which has
  // no logarithm: it stands where one value of all would.
  const height = (part, total) =>
    tail ? (part < 1 ? -Math.log10(1 - part) : Math.log10(Math.max(total, 1000))) : 100 * part;
  const nines = (value) => `${Number((100 * (1 - 10 ** -value)).toPrecision(Math.max(2, Math.round(value) + 1)))} %`;

  const cumulative = (locks, what) => () => {
    const shown = locks.filter((lock) => lock[what]);
    return {
      type: "line",
      data: {
        datasets: shown.map((lock) => ({
          label: lock.name,
          data: lock[what].points.map(([ns, part]) => ({ x: Math.max(ns, 1), y: height(part, lock[what].count), part })),
          borderColor: lockColour(lock.lock),
          backgroundColor: lockColour(lock.lock),
          borderDash: lockDash(lock.backend),
          borderWidth: lockWidth(lock.backend),
          pointRadius: lock[what].buckets ? 0 : 3,
          pointHitRadius: 6,
        })),
      },
      options: {
        interaction: { mode: "nearest", intersect: false },
        scales: {
          x: axis("at most", {
            type: "logarithmic",
            ticks: { callback: (value) => (isPowerOfTen(value) ? roundTime(value) : null), maxRotation: 0, autoSkip: false },
          }),
          y: axis(tail ? "part of all, one nine a step" : "part of all", {
            min: 0,
            max: tail ? undefined : 100,
            ticks: tail ? { stepSize: 1, callback: (value) => nines(value) } : { callback: (value) => `${value} %` },
          }),
        },
        plugins: {
          legend: lineLegend(),
          tooltip: {
            callbacks: {
              title: () => "",
              label: (item) => `${item.dataset.label}: ${plain(100 * item.raw.part)} % at most ${time(item.raw.x)}`,
            },
          },
        },
      },
    };
  };

  const cumulativeText = (locks, what, meaning) => {
    const shown = locks.filter((lock) => lock[what]);
    const text = [meaning];
    if (shown.some((lock) => !lock[what].buckets))
      text.push("Points without histogram buckets (compact=1) are p50, p90, p99, p99.9 and the maximum; the lines between them are no data.");
    if (shown.some((lock) => lock[what].bounded)) text.push("Of several boots without buckets the worst is shown.");
    if (what === "handoff") {
      const skew = Math.max(...shown.map((lock) => lock.handoff.skew ?? 0));
      text.push(`Read on two CPUs whose clocks are known to ${time(skew)}: below that nothing is known.`);
    }
    return text.join(" ");
  };

  /// Bars side by side for what is counted, a set each: [label, key of the lock's mean, colour].
  const counts = (shown, sets) => () => {
    const all = shown.flatMap((lock) => sets.map(([, key]) => lock[key]?.mean ?? 0)).filter((value) => value > 0);
    return {
      type: "bar",
      data: {
        labels: shown.map((lock) => lock.name),
        datasets: sets
          .filter(([, key]) => shown.some((lock) => lock[key]?.mean > 0))
          .map(([label, key, colour]) => ({
            label,
            data: shown.map((lock) => lock[key]?.mean || null),
            texts: shown.map((lock) => small(lock[key]?.mean ?? 0)),
            backgroundColor: faded(variable(colour)),
            borderColor: variable(colour),
            borderWidth: 1,
            maxBarThickness: 14,
          })),
      },
      options: {
        indexAxis: "y",
        layout: { padding: { right: 40 } },
        scales: {
          x: axis("for 1000 acquisitions", {
            type: "logarithmic",
            min: 10 ** Math.floor(Math.log10(Math.min(...all)) - 0.3),
            ticks: { callback: (value) => (isPowerOfTen(value) ? small(value) : null), maxRotation: 0, autoSkip: false },
          }),
          y: { grid: { display: false }, ticks: { autoSkip: false, color: variable("--text") } },
        },
        plugins: {
          legend: { position: "bottom", labels: { color: variable("--text"), boxWidth: 14 } },
          tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${item.dataset.texts[item.dataIndex]} for 1000 acquisitions` } },
        },
      },
    };
  };

  // --- one group -------------------------------------------------------------------------------------------------------

  const drawGroup = (group) => {
    const locks = group.locks;
    const { emulated } = group;
    page.append(
      element("h2", {}, group.title, " ", emulated ? element("span", { class: "mark" }, kEmulated) : ""),
      element(
        "p",
        { class: "muted" },
        `${plural(group.boots, "boot")}, ${plural(group.repetitions, "repetition")} of each lock` +
          (group.factor === null ? "" : `; overcommit ${plain(group.factor)}x`),
      ),
    );
    for (const noise of group.noise)
      page.append(
        element("p", { class: "banner warning noise" }, `Noisy: ${noise}. Something else kept the host busy for a part of it; means and deviations are those of two machines.`),
      );
    const cards = element("div", { class: "cards" });
    page.append(cards);

    const measured = locks.filter((lock) => lock.per_second);
    if (measured.length)
      card(
        cards,
        "Acquisitions per second",
        "All vCPUs together. Bar: mean of the repetitions; whisker: standard deviation; dots: repetitions.",
        emulated,
        barHeight(measured.length),
        bars(measured, {
          title: "acquisitions/s",
          axis: "acquisitions per second",
          sample: (lock) => lock.per_second,
          text: count,
          tick: (value) => shortCount(value),
        }),
      );

    const shared = locks.filter((lock) => lock.share);
    if (shared.length)
      card(
        cards,
        "Fairness: shares",
        "Part of all acquisitions: from the least to the most lucky vCPU of any repetition.",
        false,
        barHeight(shared.length),
        () => ({
          type: "bar",
          data: {
            labels: shared.map((lock) => lock.name),
            datasets: [
              {
                label: "share",
                data: shared.map((lock) => lock.share),
                texts: shared.map((lock) => `${plain(lock.share[0])} to ${plain(lock.share[1])} %`),
                reach: shared.map((lock) => lock.share[1]),
                backgroundColor: shared.map((lock) => faded(lockColour(lock.lock))),
                borderColor: shared.map((lock) => lockColour(lock.lock)),
                borderWidth: 1,
                borderSkipped: false,
                minBarLength: 3,
                maxBarThickness: 18,
              },
            ],
          },
          options: {
            indexAxis: "y",
            layout: { padding: { top: 14 } },
            scales: {
              x: axis("share of one vCPU", {
                min: 0,
                suggestedMax: 1.3 * Math.max(...shared.map((lock) => lock.share[1])),
                ticks: { callback: (value) => (value <= 100 ? `${value} %` : ""), maxRotation: 0 },
              }),
              y: { grid: { display: false }, ticks: { autoSkip: false, color: variable("--text") } },
            },
            plugins: {
              legend: { display: false },
              guide: group.cpus ? { value: 100 / group.cpus, text: `equal: ${percent(100 / group.cpus)}` } : {},
              tooltip: { callbacks: { label: (item) => item.dataset.texts[item.dataIndex] } },
            },
          },
        }),
      );

    for (const [what, title, meaning] of [
      ["wait", "Waiting for the lock", "From the call of lock() until it is held, on one CPU. A click on a name hides its line."],
      ["handoff", "Handoff", "From the releasing store to the next holder's first instruction, where somebody waited."],
    ]) {
      const shown = locks.filter((lock) => lock[what]);
      if (shown.length)
        card(cards, title, cumulativeText(locks, what, meaning), emulated, 380 + 14 * Math.ceil(shown.length / 3), cumulative(locks, what));
      else note(cards, title, "No histogram of it in these results.");
    }

    const fair = locks.filter((lock) => lock.jain);
    if (fair.length)
      card(
        cards,
        "Fairness: Jain's index",
        "1 is equal shares; one divided by the number of vCPUs is one vCPU that gets everything.",
        false,
        barHeight(fair.length),
        bars(fair, { title: "Jain index", axis: "Jain's index", least: 1, sample: (lock) => lock.jain, text: (value) => value.toFixed(3), tick: (value) => (value <= 1 ? plain(value) : "") }),
      );

    // A lock that never sleeps has nothing to show here.
    const sleepers = locks.filter((lock) => lock.halts?.mean > 0 || lock.kicks?.mean > 0);
    if (sleepers.length)
      card(
        cards,
        "Halts and kicks",
        "For a thousand acquisitions, on a logarithmic axis. Locks that did neither are left out. Kicks above halts are wasted kicks.",
        false,
        barHeight(sleepers.length, 2) + 30,
        counts(sleepers, [
          ["halts", "halts", "--lock-queued"],
          ["kicks", "kicks", "--lock-ticket"],
        ]),
      );
    else note(cards, "Halts and kicks", "No lock halted or kicked in these runs.");

    // Of the others KVM sees no more than idle vCPUs.
    const seen = sleepers.filter((lock) => lock.host_halt_exits?.mean > 0);
    if (seen.length)
      card(
        cards,
        "What KVM counted",
        "For a thousand acquisitions, on a logarithmic axis, between the sync points around each measurement. halt_exits has the HLTs of vCPUs without work as well; a directed yield is tried for each kick.",
        false,
        barHeight(seen.length, 4) + 30,
        counts(seen, [
          ["halt_exits", "host_halt_exits", "--lock-queued"],
          ["halt_wakeup", "host_halt_wakeup", "--lock-pv-queued"],
          ["directed yields tried", "host_directed_yield_attempted", "--lock-ticket"],
          ["of these successful", "host_directed_yield_successful", "--lock-tas"],
        ]),
      );

    const woken = locks.filter((lock) => lock.kick_to_run);
    if (woken.length)
      card(
        cards,
        "Kick to run",
        "Mean time from the call of a kick to its target running again, of each repetition that had kicks; read on two CPUs.",
        emulated,
        barHeight(woken.length),
        bars(woken, { title: "kick to run", axis: "from kick to running", sample: (lock) => lock.kick_to_run, text: time, tick: (value) => roundTime(value) }),
      );

    const stolen = locks.filter((lock) => lock.steal);
    if (stolen.some((lock) => lock.steal.mean > 0))
      card(
        cards,
        "Steal",
        "Time in which the hypervisor ran something else while a vCPU wanted to run, in percent of the vCPUs' time. It belongs beside every figure.",
        false,
        barHeight(stolen.length),
        bars(stolen, { title: "steal", axis: "percent of the vCPUs' time", sample: (lock) => lock.steal, text: (value) => `${plain(value)} %`, tick: (value) => `${value} %` }),
      );
    else if (stolen.length)
      note(cards, "Steal", "No steal time was reported: the vCPUs always ran, or this hypervisor does not tell.");

    page.append(figures(group));
  };

  const figures = (group) => {
    const mean = (sample, text) => (sample ? text(sample.mean) + (sample.stdev === null ? "" : ` ± ${text(sample.stdev)}`) : "-");
    const bound = (distribution, key) => (distribution ? (distribution.bounded && key !== "max" ? "<" : "") + time(distribution[key]) : "-");
    const columns = [
      ["acquisitions/s", (lock) => mean(lock.per_second, count)],
      ["share min, max", (lock) => (lock.share ? `${plain(lock.share[0])}, ${plain(lock.share[1])} %` : "-")],
      ["Jain", (lock) => (lock.jain ? lock.jain.mean.toFixed(3) : "-")],
      ["wait p50", (lock) => bound(lock.wait, "p50")],
      ["p99", (lock) => bound(lock.wait, "p99")],
      ["max", (lock) => bound(lock.wait, "max")],
      ["handoff p50", (lock) => bound(lock.handoff, "p50")],
      ["p99", (lock) => bound(lock.handoff, "p99")],
      ["halts/1000", (lock) => (lock.halts ? small(lock.halts.mean) : "-")],
      ["kicks/1000", (lock) => (lock.kicks ? small(lock.kicks.mean) : "-")],
      ["kick to run", (lock) => mean(lock.kick_to_run, time)],
      ["steal", (lock) => (lock.steal ? percent(lock.steal.mean) : "-")],
    ];
    return element(
      "details",
      {},
      element("summary", {}, "The figures as a table"),
      element(
        "div",
        { class: "scroll" },
        element(
          "table",
          {},
          element("thead", {}, element("tr", {}, element("th", {}, "lock/back end"), ...columns.map(([name]) => element("th", { class: "number" }, name)))),
          element(
            "tbody",
            {},
            ...group.locks.map((lock) =>
              element("tr", {}, element("th", { scope: "row" }, lock.name), ...columns.map(([, cell]) => element("td", { class: "number" }, cell(lock)))),
            ),
          ),
        ),
      ),
    );
  };

  // --- overcommit ------------------------------------------------------------------------------------------------------

  const curves = (set, options) => () => {
    const shown = set.locks
      .map((lock) => ({ lock, points: lock.points.filter((point) => options.value(point) !== null) }))
      .filter(({ points }) => points.length);
    const factors = shown.flatMap(({ points }) => points.map((point) => point.factor));
    const low = Math.min(...factors);
    const high = Math.max(...factors);
    // Beside each other, so that one whisker does not hide the next.
    const step = options.sample ? ((high - low) * 0.1) / shown.length : 0;
    const aside = (index) => step * (index - (shown.length - 1) / 2);
    const tops = shown.flatMap(({ points }) =>
      points.map((point) => options.value(point) + (options.sample ? (options.sample(point)?.stdev ?? 0) : 0)),
    );
    return {
      type: "line",
      data: {
        datasets: shown.map(({ lock, points }, index) => ({
          label: lock.name,
          data: points.map((point) => ({ x: point.factor + aside(index), y: options.value(point), factor: point.factor, cpus: point.cpus })),
          samples: options.sample ? points.map(options.sample) : null,
          dots: false,
          borderColor: lockColour(lock.lock),
          backgroundColor: lockColour(lock.lock),
          borderDash: lockDash(lock.backend),
          borderWidth: lockWidth(lock.backend),
          pointRadius: 3,
        })),
      },
      options: {
        interaction: { mode: "nearest", intersect: false },
        scales: {
          x: axis("vCPUs for each host CPU", {
            type: "linear",
            min: low - (high - low) * 0.08,
            max: high + (high - low) * 0.08,
            afterBuildTicks: (scale) => {
              scale.ticks = [...new Set(factors)].sort((a, b) => a - b).map((value) => ({ value }));
            },
            ticks: { callback: (value) => `${plain(value)}x`, autoSkip: false },
          }),
          y: axis(options.axis, { suggestedMax: Math.max(...tops), ...options.scale }),
        },
        plugins: {
          legend: lineLegend(),
          tooltip: {
            callbacks: {
              title: () => "",
              label: (item) => `${item.dataset.label}, ${item.raw.cpus} vCPUs (${plain(item.raw.factor)}x): ${options.text(item.raw.y)}`,
            },
          },
        },
      },
    };
  };

  const drawOvercommit = (set) => {
    page.append(element("h2", {}, set.title, " ", set.emulated ? element("span", { class: "mark" }, kEmulated) : ""));
    const cards = element("div", { class: "cards" });
    page.append(cards);
    const tall = 380 + 14 * Math.ceil(set.locks.length / 3);
    card(
      cards,
      "Acquisitions per second under overcommit",
      "All vCPUs together, mean of the repetitions; whisker: standard deviation." +
        (set.emulated ? " Each factor is a run of its own: compare the order and the ratios of the locks, not one lock's times." : ""),
      set.emulated,
      tall,
      curves(set, {
        value: (point) => point.per_second?.mean ?? null,
        sample: (point) => point.per_second,
        axis: "acquisitions per second",
        text: count,
        scale: { min: 0, ticks: { callback: (value) => shortCount(value) } },
      }),
    );
    if (set.locks.some((lock) => lock.points.some((point) => point.wait_p99 !== null)))
      card(
        cards,
        "Waiting for the lock under overcommit, p99",
        "99 % of the waits were at most so long. Of several boots without histogram buckets the worst is shown.",
        set.emulated,
        tall,
        curves(set, {
          value: (point) => (point.wait_p99 === null ? null : Math.max(point.wait_p99, 1)),
          axis: "wait p99",
          text: time,
          scale: { type: "logarithmic", ticks: { callback: (value) => (isPowerOfTen(value) ? roundTime(value) : null), autoSkip: false } },
        }),
      );
  };

  // --- verdict, context ------------------------------------------------------------------------------------------------

  const drawHead = () => {
    const { verdict } = data;
    const kind = verdict.word === "PASS" ? "good" : verdict.word === "SKIP" ? "other" : "bad";
    const themeButton = element("button", { type: "button", id: "theme" });
    const tailButton = element("button", { type: "button", id: "tail", "aria-pressed": "false", title: "Distributions with one nine a step" }, "Show tails");
    const setTheme = (theme) => {
      root.dataset.theme = theme;
      themeButton.textContent = theme === "dark" ? "Light" : "Dark";
    };
    const system = matchMedia("(prefers-color-scheme: dark)");
    setTheme(system.matches ? "dark" : "light");
    let chosen = false;
    system.addEventListener("change", () => {
      if (chosen) return;
      setTheme(system.matches ? "dark" : "light");
      draw();
    });
    themeButton.addEventListener("click", () => {
      chosen = true;
      setTheme(root.dataset.theme === "dark" ? "light" : "dark");
      draw();
    });
    tailButton.addEventListener("click", () => {
      tail = !tail;
      tailButton.setAttribute("aria-pressed", String(tail));
      draw();
    });
    page.append(
      element(
        "header",
        {},
        element("h1", {}, "spinkick"),
        element("span", { class: `verdict ${kind}` }, verdict.word),
        element(
          "span",
          {},
          `${verdict.pass} of ${plural(verdict.total, "test")} passed` +
            ["fail", "error", "skip", "not_run"]
              .filter((key) => verdict[key])
              .map((key) => `, ${verdict[key]} ${{ fail: "failed", error: "erred", skip: "skipped", not_run: "not run" }[key]}`)
              .join("") +
            (verdict.runs > 1 ? `, in ${verdict.runs} runs` : ""),
        ),
        element("span", { class: "spacer" }),
        tailButton,
        themeButton,
      ),
    );
    if (verdict.reason) page.append(element("p", {}, verdict.reason));
    if (data.emulated)
      page.append(
        element(
          "p",
          { class: "banner warning" },
          "Emulated: ratios only. Software interprets the guest's instructions, so durations say nothing about hardware. Order and counts are real; compare figures of one run with each other, nothing else.",
        ),
      );
  };

  const rows = (cells, header) => element("table", {}, header, element("tbody", {}, ...cells));

  const drawTroubles = () => {
    const { troubles, left_out: leftOut, skips } = data.tests;
    if (troubles.length) {
      page.append(
        element("h2", {}, "Tests that did not pass"),
        element(
          "div",
          { class: "scroll" },
          rows(
            troubles.map((test) =>
              element("tr", {}, element("td", { class: "status" }, test.status), element("th", { scope: "row" }, test.name), element("td", {}, test.run), element("td", { class: "value" }, test.reason)),
            ),
            null,
          ),
        ),
      );
      if (leftOut) page.append(element("p", { class: "muted" }, `and ${leftOut} more`));
    }
    if (data.verdict.notes.length)
      page.append(element("h2", {}, "Notes"), element("ul", {}, ...data.verdict.notes.map((text) => element("li", {}, text))));
    if (skips.length)
      page.append(
        element(
          "details",
          {},
          element("summary", {}, `${plural(data.verdict.skip, "skipped test")}, by reason`),
          rows(
            skips.map((skip) => element("tr", {}, element("td", { class: "number" }, String(skip.count)), element("td", { class: "value" }, skip.reason))),
            null,
          ),
        ),
      );
  };

  const drawContext = () => {
    const { boots, rows: lines } = data.context;
    page.append(element("h2", {}, "What ran where"));
    if (!boots.length) {
      page.append(element("p", { class: "muted" }, "The image wrote no context record."));
      return;
    }
    const header =
      boots.length > 1
        ? element("thead", {}, element("tr", {}, element("th", {}, "configuration"), ...boots.map((number, i) => element("th", {}, `${i + 1} (${plural(number, "boot")})`))))
        : null;
    page.append(
      element(
        "div",
        { class: "scroll" },
        rows(
          lines.map((line) => element("tr", {}, element("th", { scope: "row" }, line.label), ...line.cells.map((cell) => element("td", { class: "value" }, cell)))),
          header,
        ),
      ),
    );
  };

  drawHead();
  drawTroubles();
  data.overcommit.forEach(drawOvercommit);
  data.groups.forEach(drawGroup);
  if (!data.groups.length) page.append(element("p", { class: "muted" }, "These results hold no benchmark figures: was tests= without bench.*?"));
  drawContext();
  page.append(element("footer", {}, `Charts by Chart.js ${Chart.version}, MIT licence. What each figure means: docs/reading-a-report.md of spinkick.`));
  draw();
  root.dataset.ready = "true";
})();
