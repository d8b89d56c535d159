/** Panels with tabs, and the borders between them, which can be moved. */

import { fill, h } from "./dom";

export interface Tab {
  name: string;
  label: string;
  title: string;
  content: HTMLElement;
}

export class Tabs {
  readonly element: HTMLElement;
  readonly tools: HTMLElement;
  private readonly bar: HTMLElement;
  private readonly body: HTMLElement;
  private readonly tabs: Tab[];
  current = "";

  constructor(
    label: string,
    tabs: Tab[],
    private readonly shown: (name: string) => void = () => undefined,
  ) {
    this.tabs = tabs;
    this.bar = h("div", { class: "tabs", attrs: { role: "tablist", "aria-label": label } });
    this.tools = h("div", { class: "tools" });
    this.body = h("div", { class: "panel-body" });
    this.element = h("section", { class: "panel", attrs: { "aria-label": label } }, h("header", {}, this.bar, this.tools), this.body);
    for (const tab of tabs) this.bar.append(this.button(tab));
    for (const tab of tabs) tab.content.setAttribute("role", "tabpanel");
    if (tabs[0]) this.show(tabs[0].name);
  }

  private button(tab: Tab): HTMLButtonElement {
    const attrs = { type: "button", role: "tab", "data-tab": tab.name };
    const made = h("button", { title: tab.title, attrs, on: { click: () => this.show(tab.name) } }, tab.label);
    made.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const at = this.tabs.findIndex((each) => each.name === this.current);
      const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length]!;
      this.show(next.name);
      this.bar.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
    });
    return made;
  }

  show(name: string): void {
    const tab = this.tabs.find((each) => each.name === name);
    if (!tab) return;
    const before = this.current;
    this.current = name;
    for (const made of this.bar.querySelectorAll<HTMLElement>("[role=tab]")) {
      const own = made.dataset["tab"] === name;
      made.setAttribute("aria-selected", String(own));
      made.tabIndex = own ? 0 : -1;
    }
    if (before !== name) fill(this.body, tab.content);
    this.shown(name);
  }

  label(name: string, text: string): void {
    const made = this.bar.querySelector(`[data-tab="${name}"]`);
    if (made) made.textContent = text;
  }
}

/** A border that sets a size of the layout, in pixels, as a variable of style.css. */
export function border(variable: string, way: "x" | "y", sign: 1 | -1, least: number, most: () => number): HTMLElement {
  const root = document.documentElement;
  const label = way === "x" ? "Move the border sideways" : "Move the border up or down";
  const made = h("div", {
    class: `border border-${way}`,
    attrs: { role: "separator", tabindex: 0, "aria-label": label, "aria-orientation": way === "x" ? "vertical" : "horizontal" },
  });
  const size = (): number => parseFloat(getComputedStyle(root).getPropertyValue(variable));
  const move = (value: number): void => root.style.setProperty(variable, `${Math.max(least, Math.min(most(), value))}px`);
  made.addEventListener("pointerdown", (event) => {
    const begin = way === "x" ? event.clientX : event.clientY;
    const before = size();
    made.setPointerCapture(event.pointerId);
    const moved = (at: PointerEvent): void => move(before + sign * ((way === "x" ? at.clientX : at.clientY) - begin));
    made.addEventListener("pointermove", moved);
    made.addEventListener("pointerup", () => made.removeEventListener("pointermove", moved), { once: true });
  });
  made.addEventListener("keydown", (event) => {
    const back = way === "x" ? "ArrowLeft" : "ArrowUp";
    const forth = way === "x" ? "ArrowRight" : "ArrowDown";
    if (event.key === back) move(size() - sign * 24);
    if (event.key === forth) move(size() + sign * 24);
  });
  return made;
}

let note: HTMLElement | null = null;
let hiding = 0;

/** A word on what was done, or could not be. */
export function say(text: string, kind: "good" | "bad" = "good"): void {
  note ??= document.body.appendChild(h("div", { class: "note", attrs: { role: "status", "aria-live": "polite" } }));
  note.textContent = text;
  note.dataset["kind"] = kind;
  note.hidden = false;
  window.clearTimeout(hiding);
  hiding = window.setTimeout(() => note && (note.hidden = true), kind === "good" ? 3000 : 7000);
}

/** What is asked for fails: that is said. */
export function tried(act: () => Promise<unknown>): () => void {
  return () => {
    act().catch((error: unknown) => say(error instanceof Error ? error.message : String(error), "bad"));
  };
}
