// Small pieces of a page. Text goes in as text only: nothing that a job says is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, about, inner) {
  for (const [name, value] of Object.entries(about)) element.setAttribute(name, value);
  element.append(...inner.map((one) => (typeof one === "number" ? String(one) : one)));
  return element;
}

export const el = (name, about = {}, ...inner) => fill(document.createElement(name), about, inner);
export const svg = (name, about = {}, ...inner) => fill(document.createElementNS(SVG, name), about, inner);

export function table(heads, rows, empty) {
  if (!rows.length) return el("p", { class: "empty" }, empty);
  const head = heads.map(([text, kind]) => el("th", { class: kind ?? "", scope: "col" }, text));
  const body = rows.map((row) =>
    el("tr", {}, ...row.map((cell, place) => el("td", { class: heads[place][1] ?? "" }, ...[cell].flat()))),
  );
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)));
}

export const tile = (value, what, kind = "") =>
  el("div", { class: "tile" }, el("b", { class: kind }, value), el("span", {}, what));

export const count = (number) => number.toLocaleString("en");

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

export const ago = (at, now) => `${duration(Math.max(0, now - at))} ago`;

export const clock = (at) =>
  new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
