// SPDX-License-Identifier: BSD-2-Clause
//
// Runs inside the page of `spinkick-report html`, behind its own scripts: looks at every chart through the library's own
// objects and at every canvas through its pixels, in both themes, and writes what it found into the page, which the
// caller reads (report_page.sh).
"use strict";

(() => {
  const lines = [];
  const say = (text) => lines.push(text);
  const fault = (text) => lines.push(`FAULT ${text}`);

  // Numbers of a data point: a bar's length or two ends, or x and y.
  const numbers = (point) => (Array.isArray(point) ? point : typeof point === "object" && point !== null ? [point.x, point.y] : [point]);

  // Read from a copy that is made for reading, or the browser gives advice on the console.
  const painted = (canvas) => {
    const copy = document.createElement("canvas");
    copy.width = canvas.width;
    copy.height = canvas.height;
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    const colours = new Set();
    let pixels = 0;
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 3] > 0) {
        ++pixels;
        if (colours.size < 100) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      }
    return { part: pixels / (data.length / 4), colours: colours.size };
  };

  const look = (theme) => {
    const canvases = [...document.querySelectorAll("canvas")];
    let points = 0;
    canvases.forEach((canvas, index) => {
      const title = canvas.closest("section")?.querySelector("h3")?.textContent ?? "";
      const name = `${theme} ${index + 1} "${title}"`;
      const chart = Chart.getChart(canvas);
      if (!title) fault(`${name}: no title`);
      if (!chart) return fault(`${name}: no chart`);
      if (!chart.data.datasets.length) fault(`${name}: no datasets`);
      for (const dataset of chart.data.datasets) {
        const given = dataset.data.filter((point) => point !== null);
        if (!given.length) fault(`${name}: no data in ${dataset.label}`);
        if (!given.flatMap(numbers).every(Number.isFinite)) fault(`${name}: no number in ${dataset.label}`);
        points += given.length;
      }
      const { part, colours } = painted(canvas);
      if (part < 0.02 || colours < 4) fault(`${name}: blank, ${(100 * part).toFixed(1)} % painted in ${colours} colours`);
      say(`chart ${name}: ${chart.data.datasets.length} datasets`);
    });
    say(`charts ${theme} ${canvases.length}, points ${points}, background ${getComputedStyle(document.body).backgroundColor}`);
  };

  // WCAG's contrast of text and what it stands on.
  const luminance = (colour) => {
    const [r, g, b] = colour
      .match(/\d+/g)
      .map(Number)
      .map((c) => (c /= 255) && (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * (r || 0) + 0.7152 * (g || 0) + 0.0722 * (b || 0);
  };
  const contrast = (theme) => {
    for (const selector of ["h1", ".muted", ".card h3", ".card p", ".mark", ".verdict", "button"]) {
      const text = document.querySelector(selector);
      if (!text) continue;
      let under = text;
      while (under && getComputedStyle(under).backgroundColor === "rgba(0, 0, 0, 0)") under = under.parentElement;
      const [a, b] = [getComputedStyle(text).color, getComputedStyle(under ?? document.body).backgroundColor].map(luminance).sort();
      const ratio = (b + 0.05) / (a + 0.05);
      if (ratio < 4.5) fault(`${theme}: contrast of ${selector} is ${ratio.toFixed(1)}`);
    }
  };

  try {
    if (document.documentElement.dataset.ready !== "true") fault("the page's script did not reach its end");
    for (let i = 0; i < 2; ++i) {
      const theme = document.documentElement.dataset.theme;
      look(theme);
      contrast(theme);
      document.getElementById("theme").click();
    }
    document.getElementById("tail").click();
    look("tails");
    if (document.documentElement.scrollWidth > innerWidth) fault("the page is wider than its window");
    say(`banner ${document.querySelectorAll(".banner.warning").length}, marks ${document.querySelectorAll(".mark").length}`);
    if (document.querySelector("#page script, #page img, #page iframe")) fault("text of the data became HTML");
    say("end of the check");
  } catch (error) {
    fault(`${error}`);
  }
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = lines.join("\n");
  document.body.replaceChildren(found);
})();
