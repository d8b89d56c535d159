/** What all parts of the page know, and who is told when it changes. */

import type { Checked, DetectionTold, CauseTold, MomentTold, RunTold, SessionTold } from "./api";

export interface Chosen {
  detection: DetectionTold;
  causes: CauseTold;
}

export interface State {
  session: SessionTold | null;
  checked: Checked | null;
  run: RunTold | null;
  file: string | null;
  rule: string | null;
  key: string[] | null;
  chosen: Chosen | null;
  event: number | null;
  moment: MomentTold | null;
  window: [number, number] | null;
}

type Name = keyof State;

const state: State = {
  session: null,
  checked: null,
  run: null,
  file: null,
  rule: null,
  key: null,
  chosen: null,
  event: null,
  moment: null,
  window: null,
};
const listeners = new Map<Name, (() => void)[]>();

export function now<K extends Name>(name: K): State[K] {
  return state[name];
}

export function set<K extends Name>(name: K, value: State[K]): void {
  if (state[name] === value) return;
  state[name] = value;
  for (const told of listeners.get(name) ?? []) told();
}

export function when(names: Name[], told: () => void): void {
  for (const name of names) listeners.set(name, [...(listeners.get(name) ?? []), told]);
}
