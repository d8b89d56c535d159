/** Times in microseconds, as people read them: UTC, or plain milliseconds where they are counters of a test. */

const YEAR = 365 * 86_400e6;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500].flatMap((n) => [n, n * 1e3]);
const SECOND = 1e6;
const LONGER = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
  .concat([2, 5, 7, 14, 30, 61, 91, 182, 365, 730, 1825, 3650].map((days) => days * 86400))
  .map((seconds) => seconds * SECOND);
const NICE = [...STEPS, ...LONGER].sort((a, b) => a - b);

export function isCounter(last: number): boolean {
  return last < YEAR;
}

export function iso(time: number): string {
  const text = new Date(Math.floor(time / 1000)).toISOString();
  const rest = Math.round(time % 1000);
  return rest ? `${text.slice(0, -1)}${String(rest).padStart(3, "0")}Z` : text;
}

/** A time on its own. */
export function told(time: number, last: number): string {
  if (isCounter(last)) return `${time / 1000}`;
  return iso(time).replace("T", " ").replace("Z", "").replace(/\.000$/, "");
}

/** The time of day, with the date where that matters. */
export function short(time: number, last: number, dated = false): string {
  const text = told(time, last);
  return isCounter(last) || dated ? text : text.slice(11);
}

export function duration(microseconds: number): string {
  const units: [number, string][] = [
    [86_400e6, "d"],
    [3600e6, "h"],
    [60e6, "min"],
    [1e6, "s"],
    [1e3, "ms"],
  ];
  for (const [size, unit] of units) {
    if (Math.abs(microseconds) >= size) return `${Number((microseconds / size).toPrecision(3))} ${unit}`;
  }
  return `${Math.round(microseconds)} µs`;
}

export interface Tick {
  at: number;
  label: string;
}

/** Where to put marks on an axis, at most about so many. */
export function ticks(first: number, last: number, most: number): Tick[] {
  const step = NICE.find((size) => (last - first) / size <= most) ?? NICE[NICE.length - 1]!;
  const found: Tick[] = [];
  for (let at = Math.ceil(first / step) * step; at <= last && found.length < 100; at += step) {
    found.push({ at, label: tickLabel(at, step, last, at - step < first) });
  }
  return found;
}

function tickLabel(at: number, step: number, last: number, isFirst: boolean): string {
  if (isCounter(last)) return `${at / 1000}`;
  const text = iso(at);
  if (step >= 86_400e6) return text.slice(0, 10);
  const atMidnight = at % 86_400e6 === 0;
  const day = atMidnight || isFirst ? `${text.slice(5, 10)} ` : "";
  if (step >= 60e6) return day + text.slice(11, 16);
  if (step >= SECOND) return day + text.slice(11, 19);
  return text.slice(14, 23) + (step < 1000 ? text.slice(23, -1) : "");
}
