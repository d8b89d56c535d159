/** What the server is asked. The token stands in the link, behind the #, and is kept for this tab. */

const KEPT = "coincide-token";

function token(): string {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEPT) ?? "";
}

const headers = { Authorization: `Bearer ${token()}` };

export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly hint: string | null = null,
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | string[] | undefined>;

function path(name: string, query: Query = {}): string {
  const given = Object.entries(query).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return Array.isArray(value) ? value.map((each) => [key, each]) : [[key, String(value)]];
  });
  const text = new URLSearchParams(given).toString();
  return `./api/${name}${text ? `?${text}` : ""}`;
}

async function checked(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => ({}))) as { error?: string; hint?: string | null };
  throw new Refused(told.error ?? `the server says ${answer.status}`, answer.status, told.hint ?? null);
}

export async function get<T>(name: string, query: Query = {}): Promise<T> {
  return (await (await checked(await fetch(path(name, query), { headers }))).json()) as T;
}

export async function getText(name: string, query: Query = {}): Promise<string> {
  return (await checked(await fetch(path(name, query), { headers }))).text();
}

export async function getNumbers(name: string, query: Query = {}): Promise<Uint32Array> {
  return new Uint32Array(await (await checked(await fetch(path(name, query), { headers }))).arrayBuffer());
}

export async function post<T>(name: string, body: unknown = {}): Promise<T> {
  const given = { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await (await checked(await fetch(path(name), given))).json()) as T;
}

// What it answers.

export interface FileEntry {
  name: string;
  kind: "rules" | "events";
  loaded: boolean;
  changed: boolean;
}
export type Lane = [name: string, count: number];
export interface EventsTold {
  name: string;
  count: number;
  rejected: number;
  span: [number, number] | null;
  lanes: Lane[];
  attributes: string[];
}
export interface SessionTold {
  version: string;
  root: string;
  files: FileEntry[];
  endings: string[];
  first: string | null;
  events: EventsTold;
  live: LiveTold | null;
}
export interface LiveTold {
  url: string;
  running: boolean;
  failure: string | null;
  arrived: number;
  past: boolean;
}
export interface Diagnostic {
  severity: string;
  message: string;
  hint: string | null;
  file?: string;
  line?: number;
  column?: number;
  start?: number;
  end?: number;
}
export interface RuleTold {
  name: string;
  language: string;
  place: [file: string, start: number, end: number] | null;
}
export interface Checked {
  valid: boolean;
  rules: RuleTold[];
  diagnostics: Diagnostic[];
}
export interface RunTold {
  number: number;
  ended: boolean;
  consumed: number;
  total: number;
  last: number;
  seconds: number;
  detections: number;
  lanes: Lane[];
  failure: Diagnostic[];
  warnings: Diagnostic[];
  snapshots: number;
}
export type Record_ = Record<string, unknown> & { type: string };
export interface DetectionTold {
  number: number;
  rule: string;
  lo: number;
  hi: number;
  moment: number;
  accepted: boolean;
  record: Record_;
}
export interface CauseTold {
  type: string;
  lo: number;
  hi: number;
  record: Record_;
  note: string;
  known: boolean;
  parts: CauseTold[];
  row?: number;
  detection?: number | null;
  left_out?: number;
}
export interface Unfinished {
  rule: string;
  key: (string | null)[];
  what: string;
  since: number | null;
  due: number | null;
}
export interface MomentTold {
  moment: number;
  clock: number | null;
  row: number | null;
  made: number[];
  counts: Record<string, number>;
  unfinished: Unfinished[];
  left_out: number;
  lit: Record<string, number>;
}
export interface Marks {
  marks: [rows: number[], lanes: number[], lo: number[], hi: number[]] | null;
}
export interface Statistics {
  rule: string;
  language: string;
  stage: number;
  key: string[];
  reads: number;
  detections: number;
  keys: number | null;
  last: number | null;
  under_way: number;
}
export interface GraphNode {
  number: number;
  name: string;
  kind: string;
  language: string;
  stage: number;
  key: string[] | null;
  reads: string[] | null;
  detections: string[];
  makes: string[];
  tier: string;
  plan: string | null;
}
export interface GraphTold {
  nodes: GraphNode[];
  edges: [number, number][];
}
