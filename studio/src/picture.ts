/** The rule under the cursor, as its language draws it; what is under way at this moment is lit. */

import { get, getText, type GraphNode, type GraphTold } from "./api";
import { button, fill, h, s } from "./dom";
import { say } from "./panels";
import { now, set, when } from "./state";

/** The colours that the server draws with, by the colours of the page. */
const COLOURS: Record<string, string> = {
  "#1f2933": "var(--ink)",
  "#ffffff": "var(--paper)",
  "#9aa5b1": "var(--faint)",
  "#52606d": "var(--faint)",
  "#0b7285": "var(--accent)",
  "#829ab1": "var(--pipe)",
  "#d9e8f5": "var(--water)",
  "#e6f4f1": "var(--span)",
  "#fff8e6": "var(--condition)",
  "#fff3d6": "var(--condition)",
};

/** A picture of the server as elements of this page: no scripts, no styles of its own, and in the colours of the page. */
export function adopted(text: string): SVGSVGElement {
  const inert = text.replaceAll(' style="', ' data-style="'); // the policy of the page lets no text be a style
  const parsed = new DOMParser().parseFromString(inert, "image/svg+xml");
  for (const other of parsed.querySelectorAll("style, script, foreignObject")) other.remove();
  const root = document.importNode(parsed.documentElement, true) as unknown as SVGSVGElement;
  for (const each of [root, ...root.querySelectorAll<SVGElement>("*")]) {
    for (const name of each.getAttributeNames()) if (name.startsWith("on")) each.removeAttribute(name);
    const style = each.getAttribute("data-style");
    each.removeAttribute("data-style");
    for (const name of ["fill", "stroke"]) {
      const colour = COLOURS[each.getAttribute(name) ?? ""];
      if (colour) each.style.setProperty(name, colour);
    }
    for (const part of (style ?? "").split(";")) {
      const [name, value] = part.split(":").map((word) => word.trim());
      if (name && value) each.style.setProperty(name, COLOURS[value] ?? value);
    }
  }
  return root;
}

export class PictureView {
  readonly element: HTMLElement;
  private readonly box = h("div", { class: "scroll picture-box", id: "picture" });
  private readonly bar = h("div", { class: "bar" });
  private automaton = localStorage.getItem("coincide-automaton") !== "false";
  private shown = "";
  private whole = false;

  constructor() {
    this.element = h("div", { class: "stack" }, this.bar, this.box);
    when(["rule", "checked"], () => void this.show());
    when(["moment", "run"], () => this.light());
    new ResizeObserver(() => this.size()).observe(this.box);
  }

  get svg(): SVGSVGElement | null {
    return this.box.querySelector("svg");
  }

  private async show(): Promise<void> {
    const checked = now("checked");
    const rule = checked?.rules.find((each) => each.name === now("rule")) ?? checked?.rules[0];
    if (!rule) {
      if (!checked?.valid && this.shown) this.box.classList.add("outdated");
      else fill(this.box, h("p", { class: "hint" }, "No rule yet."));
      return;
    }
    this.head(rule.name, rule.language);
    try {
      const text = await getText("picture", { rule: rule.name, automaton: this.automaton });
      if (now("rule") !== rule.name && now("rule") !== null && checked?.rules.some((each) => each.name === now("rule"))) return;
      this.shown = rule.name;
      this.box.classList.remove("outdated");
      fill(this.box, adopted(text));
      this.size();
      this.light();
    } catch (error) {
      await this.showPlan(rule.name, error instanceof Error ? error.message : String(error));
    }
  }

  /** What cannot be drawn is told. */
  private async showPlan(rule: string, why: string): Promise<void> {
    const { plan } = await get<{ plan: string }>("plan", { rule }).catch(() => ({ plan: "" }));
    fill(this.box, h("p", { class: "hint" }, why), h("pre", { class: "plan" }, plan));
  }

  /** As wide as there is room, but never so small that it cannot be read. */
  private size(): void {
    const svg = this.svg;
    if (!svg) return;
    const natural = Number(svg.getAttribute("width"));
    const room = this.box.clientWidth - 4;
    svg.style.width = `${Math.min(natural, Math.max(room, natural * (this.whole ? 0.1 : 0.62)))}px`;
    svg.style.height = "auto";
  }

  private head(name: string, language: string): void {
    const choice = h("select", {
      id: "rule",
      attrs: { "aria-label": "Rule" },
      on: { change: () => set("rule", choice.value) },
    });
    for (const rule of now("checked")?.rules ?? []) {
      choice.append(h("option", { attrs: { value: rule.name, selected: rule.name === name } }, rule.name));
    }
    const both = language === "opera" || language === "pretty";
    const other = button(this.automaton ? "plumbing" : "automaton", "The other way of drawing it", () => this.turn(), { class: "small" });
    const whole = button(this.whole ? "larger" : "whole", "Readable, or all of it at once", () => {
      this.whole = !this.whole;
      this.head(name, language);
      this.size();
    }, { class: "small" });
    fill(this.bar, choice, h("span", { class: "faint" }, language), h("span", { class: "spring" }), both ? other : null, whole);
  }

  private turn(): void {
    this.automaton = !this.automaton;
    localStorage.setItem("coincide-automaton", String(this.automaton));
    void this.show();
  }

  /** How much stands where, at this moment of the run. */
  private light(): void {
    const moment = now("moment");
    for (const old of this.box.querySelectorAll(".badge")) old.remove();
    for (const node of this.box.querySelectorAll<SVGGElement>("[data-node]")) {
      const count = moment?.lit?.[node.dataset["node"] ?? ""] ?? 0;
      node.classList.toggle("lit", count > 0);
      if (count > 0) node.append(badge(node, count));
    }
    this.reveal();
  }

  /** Of what is lit something should be seen. */
  private reveal(): void {
    const box = this.box.getBoundingClientRect();
    const lit = [...this.box.querySelectorAll(".lit")].map((node) => node.getBoundingClientRect());
    const first = lit[0];
    const seen = lit.some((own) => own.left >= box.left && own.right <= box.right && own.top >= box.top && own.bottom <= box.bottom);
    if (first && !seen) this.box.scrollBy(first.left - box.left - box.width / 2, first.top - box.top - box.height / 2);
  }
}

function badge(node: SVGGElement, count: number): SVGElement {
  const shape = node.querySelector<SVGGraphicsElement>("circle, rect, path");
  const box = (shape ?? node).getBBox();
  const words = count > 999 ? "999+" : String(count);
  const width = 10 + words.length * 7;
  const [x, y] = [box.x + box.width - 4, box.y - 6];
  return s(
    "g",
    { class: "badge" },
    s("rect", { x, y, width, height: 16, rx: 8 }),
    s("text", { x: x + width / 2, y: y + 12, "text-anchor": "middle" }, words),
  );
}

const WIDE = 184;
const HIGH = 62;
const GAP_X = 54;
const GAP_Y = 14;

/** All detectors: by stage from left to right, with keys and tiers, and who feeds whom. */
export class GraphView {
  readonly element = h("div", { class: "scroll picture-box", id: "graph" });

  constructor(private readonly chosen: (rule: string) => void) {
    when(["checked"], () => this.element.isConnected && void this.show());
    when(["moment", "rule", "run"], () => this.mark());
  }

  get svg(): SVGSVGElement | null {
    return this.element.querySelector("svg");
  }

  async show(): Promise<void> {
    if (!now("checked")?.valid) {
      fill(this.element, h("p", { class: "hint" }, "The rules have errors, or there are none."));
      return;
    }
    try {
      this.paint(await get<GraphTold>("graph"));
    } catch (error) {
      say(error instanceof Error ? error.message : String(error), "bad");
    }
  }

  private paint(graph: GraphTold): void {
    const stages = Math.max(0, ...graph.nodes.map((node) => node.stage)) + 1;
    const columns = Array.from({ length: stages }, (_, stage) => graph.nodes.filter((node) => node.stage === stage));
    const place = new Map<number, [number, number]>();
    for (const [stage, nodes] of columns.entries()) {
      for (const [n, node] of nodes.entries()) place.set(node.number, [16 + stage * (WIDE + GAP_X), 34 + n * (HIGH + GAP_Y)]);
    }
    const width = 32 + stages * WIDE + (stages - 1) * GAP_X;
    const height = 44 + Math.max(1, ...columns.map((nodes) => nodes.length)) * (HIGH + GAP_Y);
    const root = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "graph" }) as SVGSVGElement;
    for (let stage = 0; stage < stages; stage++) {
      root.append(s("text", { x: 16 + stage * (WIDE + GAP_X), y: 20, class: "stage" }, `stage ${stage + 1}`));
    }
    for (const [from, to] of graph.edges) root.append(edge(place.get(from)!, place.get(to)!));
    for (const node of graph.nodes) root.append(this.node(node, place.get(node.number)!));
    fill(this.element, root);
    this.mark();
  }

  private node(node: GraphNode, [x, y]: [number, number]): SVGElement {
    const reads = [...(node.reads ?? []), ...node.detections].join(", ") || "events of every type";
    const title = `${node.kind} ${node.name} (${node.language})\nreads ${reads}\nmakes ${node.makes.join(", ")}\n${node.tier}`;
    const made = s(
      "g",
      { class: "detector", "data-rule": node.name, tabindex: 0, role: "button" },
      s("title", {}, title),
      s("rect", { x, y, width: WIDE, height: HIGH, rx: 7 }),
      s("text", { x: x + 10, y: y + 18, class: "name" }, cut(node.name, 24)),
      s("text", { x: x + 10, y: y + 35 }, cut(node.key ? `key ${node.key.join(", ")}` : "no key", 28)),
      s("text", { x: x + 10, y: y + 51 }, cut(`${node.language} · ${node.tier}`, 30)),
      s("text", { x: x + WIDE - 9, y: y + 18, "text-anchor": "end", class: "count" }),
    );
    const choose = (): void => this.chosen(node.name);
    made.addEventListener("click", choose);
    made.addEventListener("keydown", (event) => event.key === "Enter" && choose());
    return made;
  }

  private mark(): void {
    const counts = now("moment")?.counts ?? {};
    for (const node of this.element.querySelectorAll<SVGGElement>("[data-rule]")) {
      const name = node.dataset["rule"] ?? "";
      node.classList.toggle("chosen", name === now("rule"));
      node.classList.toggle("lit", Boolean(counts[name]));
      const count = node.querySelector(".count");
      if (count) count.textContent = counts[name] ? `${counts[name]} under way` : "";
    }
  }
}

function edge([x1, y1]: [number, number], [x2, y2]: [number, number]): SVGElement {
  const [ax, ay, bx, by] = [x1 + WIDE, y1 + HIGH / 2, x2, y2 + HIGH / 2];
  const middle = (ax + bx) / 2;
  const d = `M${ax} ${ay}C${middle} ${ay} ${middle} ${by} ${bx - 7} ${by}m-5 -5l6 5l-6 5`;
  return s("path", { d, class: "edge" });
}

function cut(text: string, letters: number): string {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}
