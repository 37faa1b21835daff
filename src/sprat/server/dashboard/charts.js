// One chart: lines over the same hour, an axis that starts at zero, a caption that says what is what.

import { clock, el, svg } from "./elements.js";

const WIDE = 420;
const HIGH = 130;
const LEFT = 48;
const BELOW = 18;

export function chart(title, lines, from, to, show = (value) => String(value)) {
  const top = ceiling(Math.max(0, ...lines.flatMap((line) => line.points.map(([, value]) => value))));
  const x = (at) => LEFT + ((at - from) / (to - from)) * (WIDE - LEFT - 4);
  const y = (value) => 6 + (1 - value / top) * (HIGH - BELOW - 6);
  const drawn = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": title });
  for (const value of [0, top / 2, top]) {
    drawn.append(svg("line", { class: "grid", x1: LEFT, x2: WIDE - 4, y1: y(value), y2: y(value) }));
    drawn.append(svg("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, show(value)));
  }
  for (const at of [from, (from + to) / 2, to]) {
    const anchor = at === from ? "start" : at === to ? "end" : "middle";
    drawn.append(svg("text", { x: x(at), y: HIGH - 4, "text-anchor": anchor }, clock(at)));
  }
  lines.forEach((line, place) => {
    if (line.points.length) drawn.append(svg("path", { class: `mark ${COLOURS[place]}`, d: path(line, x, y) }));
  });
  const keys = lines.length > 1 ? lines.map((line, place) => el("i", { class: COLOURS[place] }, line.name)) : [];
  return el("figure", {}, el("figcaption", {}, el("b", {}, title), ...keys), drawn);
}

const COLOURS = ["one", "two"];

function path(line, x, y) {
  let drawn = "";
  let last = null;
  for (const [at, value] of line.points) {
    if (last !== null && line.steps) drawn += `L${x(at).toFixed(1)} ${y(last).toFixed(1)}`;
    drawn += `${last === null ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    last = value;
  }
  return drawn;
}

// The least round number that is not below the highest value.
function ceiling(highest) {
  if (highest <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= highest * (1 - 1e-9));
}

// So much in each step. History has a bucket only where something happened; the last step is not over.
export function flow(buckets, from, to, step, amount) {
  const sums = new Map();
  for (const bucket of buckets) {
    const place = Math.floor(bucket.at / step);
    sums.set(place, (sums.get(place) ?? 0) + amount(bucket));
  }
  const points = [];
  for (let place = Math.floor(from / step) + 1; place * step < to; place += 1)
    points.push([Math.min(place * step + step / 2, to), sums.get(place) ?? 0]);
  return points;
}
