// Draws each figure from the numbers beside it, in the page's own colours, and again when these change.
"use strict";

const scheme = window.matchMedia("(prefers-color-scheme: dark)");
const DASHES = ["solid", "dot", "dashdot", "longdash", "longdashdot", "dash"];
const SYMBOLS = ["square", "diamond", "triangle-up", "x", "star", "triangle-down"];

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// plotly.js reads some HTML in names; ours are text.
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function trace(series, at) {
  const ceiling = series.kind === "ceiling", kernel = series.kind === "kernel", points = series.kind === "points";
  const colour = ceiling ? token("--ceiling") : kernel ? token("--series-0") : token(`--series-${points ? at % 6 : 1 + (at % 5)}`);
  return {
    name: plain(series.name),
    x: series.x,
    y: series.y,
    customdata: series.names.map(plain),
    mode: points ? "markers" : ceiling ? "lines" : "lines+markers",
    line: { color: colour, width: kernel ? 3 : 1.5, dash: ceiling ? "dash" : kernel ? "solid" : DASHES[at % DASHES.length] },
    marker: { color: colour, size: kernel || points ? 8 : 7, symbol: kernel ? "circle" : SYMBOLS[at % SYMBOLS.length] },
    hovertemplate: `%{customdata}<br>%{y:.4g}<extra>${plain(series.name)}</extra>`,
  };
}

// The marks of a logarithmic axis: powers of ten, and where there are few of them twice and five times these.
function marks(values) {
  const low = Math.floor(Math.log10(Math.min(...values))), high = Math.ceil(Math.log10(Math.max(...values)));
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  const at = [];
  for (let power = low; power <= high; power += 1) at.push(...steps.map((step) => step * 10 ** power));
  const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  return { tickmode: "array", tickvals: at, ticktext: at.map((value) => short.format(value)) };
}

function axis(told, values) {
  return {
    title: { text: plain(told.title), standoff: 8 },
    type: told.scale,
    gridcolor: token("--hairline"),
    linecolor: token("--hairline"),
    zeroline: false,
    automargin: true,
    ...(told.scale === "log" ? marks(values) : { nticks: 6 }),
    ...(told.title === "percent" ? { range: [0, 105] } : {}),
  };
}

function draw(figure) {
  const told = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const layout = {
    height: 360,
    margin: { l: 56, r: 12, t: 8, b: 48 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: token("--ink") },
    hoverlabel: { bgcolor: token("--paper"), bordercolor: token("--ink"), font: { color: token("--ink") } },
    legend: { orientation: "h", y: -0.22, yanchor: "top", x: 0 },
    xaxis: axis(told.x, told.series.flatMap((series) => series.x)),
    yaxis: axis(told.y, told.series.flatMap((series) => series.y)),
  };
  Plotly.react(figure.querySelector(".canvas"), told.series.map(trace), layout, { displayModeBar: false, responsive: true });
}

const figures = [...document.querySelectorAll("figure.plot")];
figures.forEach(draw);
scheme.addEventListener("change", () => figures.forEach(draw));
