// What one sees: all pools, or one of them. It looks again every two seconds, but not in a hidden tab.

import * as api from "./api.js";
import { chart, flow } from "./charts.js";
import { ago, count, duration, el, table, tile } from "./elements.js";

const LOOK_MS = 2000;
const WINDOW = 1800;
const STEP = 30;
const MOST_POOLS = 50;

const main = document.getElementById("main");
const state = document.getElementById("state");
const form = document.getElementById("key");
const forget = document.getElementById("forget");

let looking = 0; // grows with each look: the answers to an older one are dropped

async function look() {
  const mine = ++looking;
  const name = decodeURIComponent(location.hash.match(/^#\/pools\/(.+)$/)?.[1] ?? "");
  try {
    const view = name ? pool(await api.closeUp(name, WINDOW)) : pools(await api.overview(MOST_POOLS));
    if (mine !== looking) return;
    main.replaceChildren(...view);
    where(name);
    say(`as of ${new Date().toLocaleTimeString()}`);
    ask(false);
  } catch (error) {
    if (mine !== looking) return;
    if (error.status === 401) ask(true, error.message);
    else say(error.message, true);
  }
}

function where(name) {
  document.title = name ? `${name} · sprat` : "sprat";
  document.getElementById("where").textContent = name ? `› ${name}` : "";
}

function say(text, isBad = false) {
  state.textContent = text;
  state.className = isBad ? "bad" : "";
}

function ask(needed, why = "") {
  if (needed && form.hidden) main.replaceChildren();
  form.hidden = !needed;
  forget.hidden = needed || !api.hasKey();
  if (needed) say(api.hasKey() ? why : "a key is needed", api.hasKey());
}

// -- all pools ----------------------------------------------------------------------------------

function pools(seen) {
  const rows = seen.pools.map((one) => [
    [el("a", { href: `#/pools/${encodeURIComponent(one.name)}` }, one.name), ...paused(one)],
    count(one.counts.pending),
    count(one.counts.claimed),
    count(one.counts.done),
    el("span", { class: one.counts.poisoned ? "bad" : "" }, count(one.counts.poisoned)),
    workers(one),
    duration(one.oldest_ready_seconds),
    one.stats.starts ? duration(one.stats.wait_p95) : "–",
    one.stats.finished ? duration(one.stats.run_p50) : "–",
  ]);
  const heads = [
    ...[["pool"], ["waiting", "number"], ["running", "number"], ["done", "number"], ["poisoned", "number"]],
    ...[["workers", "number"], ["oldest waits", "number"], ["wait p95", "number"], ["run p50", "number"]],
  ];
  const view = [table(heads, rows, "No pools yet. A first push makes one: sprat push POOL '{}' --create")];
  if (seen.more) view.push(el("p", { class: "soft" }, `The first ${MOST_POOLS} pools.`));
  return view;
}

const paused = (one) => (one.paused ? [el("span", { class: "badge" }, "paused")] : []);

function workers(one) {
  const { active, idle, starting, terminating } = one.workers;
  const more = [];
  if (idle) more.push(`${idle} idle`);
  if (starting) more.push(`${starting} starting`);
  if (terminating) more.push(`${terminating} leaving`);
  return more.length ? `${active} (${more.join(", ")})` : String(active);
}

// -- one pool -----------------------------------------------------------------------------------

function pool(one) {
  const now = Date.now() / 1000;
  return [
    el("h2", {}, one.name, ...paused(one)),
    el(
      "div",
      { class: "tiles" },
      tile(count(one.counts.pending), one.counts.delayed ? `waiting, ${count(one.counts.delayed)} delayed` : "waiting"),
      tile(count(one.counts.claimed), "running"),
      tile(count(one.counts.done), "done", "good"),
      tile(count(one.counts.poisoned), "poisoned", one.counts.poisoned ? "bad" : ""),
      tile(workers(one), `workers, at most ${one.settings.max_workers}`),
      tile(one.stats.starts ? duration(one.stats.wait_p95) : "–", "wait p95, 10 min"),
      tile(one.stats.finished ? duration(one.stats.run_p50) : "–", "run p50, 10 min"),
    ),
    el("h2", {}, "The last half hour"),
    charts(one, now),
    el("h2", {}, "Why it has this size"),
    decisions(one.decisions.slice(0, 8), now),
    el("h2", {}, "Workers"),
    fleet(one, now),
    el("h2", {}, "Poisoned jobs"),
    poisoned(one.poisoned, now),
  ];
}

function charts(one, now) {
  const from = now - WINDOW;
  const each = (amount) => flow(one.buckets, from, now, STEP, amount);
  const starts = each((bucket) => bucket.starts);
  const waited = each((bucket) => bucket.wait_seconds);
  const waits = starts.map(([at, number], place) => [at, number ? waited[place][1] / number : 0]);
  return el(
    "div",
    { class: "charts" },
    chart(
      "jobs in 30 s",
      [
        { name: "pushed", points: each((bucket) => bucket.arrivals) },
        { name: "finished", points: each((bucket) => bucket.finished) },
      ],
      from,
      now,
      round,
    ),
    chart("mean wait for a worker", [{ name: "wait", points: waits }], from, now, duration),
    chart("workers decided on", [{ name: "workers", points: sizes(one, from, now), steps: true }], from, now, round),
  );
}

const round = (value) => String(Math.round(value * 10) / 10);

// What each decision found, and what it wanted; between two of them, idle workers leave unseen.
function sizes(one, from, now) {
  const old = [...one.decisions].reverse();
  const before = old.filter((decision) => decision.at < from).pop();
  const inside = old.filter((decision) => decision.at >= from);
  const live = one.workers.active + one.workers.starting;
  const start = before ? before.desired : inside.length ? inside[0].current : live;
  const each = inside.flatMap((decision) => {
    const at = Math.min(decision.at, now);
    return [[at, decision.current], [at, decision.desired]];
  });
  return [[from, start], ...each, [now, live]];
}

const decisions = (found, now) =>
  table(
    [["when", "when"], ["workers", "number"], ["policy"], ["why", "why"]],
    found.map((one) => [ago(one.at, now), `${one.current} → ${one.desired}`, one.policy, one.reason]),
    "Nothing was decided yet.",
  );

function fleet(one, now) {
  const rows = one.fleet.map((worker) => [
    worker.worker_id,
    worker.status,
    worker.current_task_id ?? (worker.claims ? `${worker.claims} jobs` : "–"),
    worker.host ?? "–",
    ago(worker.last_heartbeat, now),
  ]);
  const heads = [["worker"], ["status"], ["works on"], ["host"], ["last heard of", "when"]];
  const shown = table(heads, rows, "Nobody is there: no work, nobody needed.");
  return one.moreWorkers ? el("div", {}, shown, el("p", { class: "soft" }, "The first 50.")) : shown;
}

const poisoned = (jobs, now) =>
  table(
    [["job"], ["when", "when"], ["attempts", "number"], ["error", "why"]],
    jobs.map((job) => [job.id, job.finished_at ? ago(job.finished_at, now) : "–", job.attempts, firstLine(job.error)]),
    "None.",
  );

const firstLine = (text) => (text ?? "").trim().split("\n").pop().slice(0, 300);

// -- and again ----------------------------------------------------------------------------------

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = document.getElementById("typed");
  api.useKey(typed.value.trim());
  typed.value = "";
  look();
});
forget.addEventListener("click", () => {
  api.forgetKey();
  look();
});
addEventListener("hashchange", look);
document.addEventListener("visibilitychange", () => document.hidden || look());
setInterval(() => document.hidden || !form.hidden || look(), LOOK_MS);
look();
