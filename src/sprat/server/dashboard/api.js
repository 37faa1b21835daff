// Asking the server. The key lives in this tab only.

const KEY = "sprat-key";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
export const useKey = (text) => sessionStorage.setItem(KEY, text);
export const forgetKey = () => sessionStorage.removeItem(KEY);

export async function get(path) {
  const key = sessionStorage.getItem(KEY);
  let answer;
  try {
    answer = await fetch(path, { headers: key === null ? {} : { authorization: `Bearer ${key}` } });
  } catch {
    throw new Refused(0, "the server does not answer");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.message ?? `the server said ${answer.status}`);
  return body;
}

const named = (pool) => `/api/v1/pools/${encodeURIComponent(pool)}`;

export async function overview(limit) {
  const found = await get(`/api/v1/pools?limit=${limit}`);
  const pools = await Promise.all(
    found.pools.map(async (name) => {
      const [pool, stats] = await Promise.all([get(named(name)), get(`${named(name)}/stats?seconds=600`)]);
      return { ...pool, stats };
    }),
  );
  return { pools, more: found.next !== null };
}

export async function closeUp(name, seconds) {
  const here = named(name);
  const [pool, stats, history, decisions, workers, poisoned] = await Promise.all([
    get(here),
    get(`${here}/stats?seconds=600`),
    get(`${here}/history?seconds=${seconds}`),
    get(`${here}/decisions?limit=200`),
    get(`${here}/workers?limit=50`),
    get(`${here}/jobs?status=poisoned&limit=10`),
  ]);
  return {
    ...pool,
    stats,
    buckets: history.buckets,
    decisions: decisions.decisions,
    fleet: workers.workers,
    moreWorkers: workers.next !== null,
    poisoned: poisoned.jobs,
  };
}
