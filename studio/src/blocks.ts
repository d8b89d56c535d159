/** Composition by drawing: a rule of the English-like language as blocks and pipes. The text follows the drawing, and the drawing
 * the text, for all that blocks can say. */

import { get, post } from "./api";
import { button, fill, h } from "./dom";
import { say, tried } from "./panels";
import { now, when } from "./state";
import * as trees from "./trees";
import type { Block, Path, Rule } from "./trees";

const PALETTE: [kind: string, label: string, title: string][] = [
  ["event", "● event", "Another event, behind what is chosen"],
  ["either", "or", "Either what is chosen, or another event"],
  ["together", "together", "What is chosen and another event, in any order"],
  ["times", "× n", "What is chosen, so many times"],
  ["absent", "⊘ not followed", "What is chosen, and then no such event for a time"],
  ["without", "without", "What is chosen, and meanwhile no such event"],
  ["optional", "optional", "What is chosen may also be missing"],
  ["repeat", "↻ any number", "What is chosen, any number of times"],
  ["wait", "wait", "What is chosen, and then a time passes"],
];

export interface Texts {
  readonly file: string;
  readonly text: string;
  replace(text: string): void;
}

export class BlocksView {
  readonly element: HTMLElement;
  private readonly bar = h("div", { class: "bar palette", attrs: { role: "toolbar", "aria-label": "Blocks" } });
  private readonly canvas = h("div", { class: "scroll blocks", id: "blocks" });
  private rules: Rule[] = [];
  private number = 0;
  private chosen: Path = [];
  private dragged: Block | Path | null = null;

  constructor(private readonly texts: Texts) {
    this.element = h("div", { class: "stack" }, this.bar, this.canvas);
    when(["checked", "file"], () => this.element.isConnected && tried(() => this.show())());
  }

  private get rule(): Rule | undefined {
    return this.rules[this.number];
  }

  async show(): Promise<void> {
    if (!this.texts.file.endsWith(".say")) {
      fill(this.bar);
      fill(this.canvas, h("p", { class: "hint" }, "Blocks write the English-like language: open or make a file that ends in .say."));
      return;
    }
    if (now("checked")?.diagnostics.some((each) => each.severity === "error" && each.file === this.texts.file)) {
      this.canvas.classList.add("outdated");
      return;
    }
    const { rules } = await get<{ rules: Rule[] }>("blocks", { name: this.texts.file });
    this.canvas.classList.remove("outdated");
    if (JSON.stringify(rules) === JSON.stringify(this.rules) && this.canvas.childElementCount) return;
    this.rules = rules;
    this.number = Math.min(this.number, Math.max(0, rules.length - 1));
    this.paint();
  }

  // Changes.

  private change(rule: Rule, chosen: Path = this.chosen): void {
    this.rules = this.rules.map((each, n) => (n === this.number ? rule : each));
    this.chosen = chosen;
    this.paint();
    this.write(rule, this.number);
  }

  private write(rule: Rule, number: number): void {
    tried(async () => {
      const { text } = await post<{ text: string }>("compose", { name: this.texts.file, text: this.texts.text, number, rule });
      this.texts.replace(text);
    })();
  }

  private turn(pattern: Block, chosen: Path = this.chosen): void {
    if (this.rule) this.change({ ...this.rule, pattern }, chosen);
  }

  private fresh(): Block {
    const used = JSON.stringify(this.rule?.pattern ?? "");
    const lanes = now("session")?.events.lanes.map(([name]) => name) ?? [];
    const type = lanes.find((name) => !used.includes(`"${name}"`)) ?? lanes[0] ?? "event";
    return { kind: "event", type: /^[A-Za-z_][\w-]*$/.test(type) ? type : "event" };
  }

  private add(kind: string): void {
    const pattern = this.rule?.pattern;
    if (!pattern) return;
    const [tree, path] = trees.extended(pattern, this.chosen, kind, this.fresh());
    this.turn(tree, path);
  }

  private remove(path: Path): void {
    const pattern = this.rule?.pattern;
    const left = pattern && trees.without(pattern, path);
    if (left) this.turn(left, []);
    else say("a rule needs an event", "bad");
  }

  private addRule(): void {
    const names = new Set(this.rules.map((rule) => rule.name));
    let name = "found";
    for (let n = 2; names.has(name); n++) name = `found${n}`;
    const rule: Rule = { name, pattern: this.fresh() };
    this.number = this.rules.length;
    this.write(rule, this.number);
  }

  private drop(path: Path, side: trees.Side): void {
    const pattern = this.rule?.pattern;
    const dragged = this.dragged;
    this.dragged = null;
    if (!pattern || dragged === null) return;
    const moved = Array.isArray(dragged) ? trees.moved(pattern, dragged, path, side) : trees.placed(pattern, path, dragged, side);
    if (moved) this.turn(moved, []);
  }

  // Drawing.

  private paint(): void {
    const choice = h("select", {
      attrs: { "aria-label": "Rule" },
      on: { change: () => ((this.number = Number(choice.value)), (this.chosen = []), this.paint()) },
    });
    for (const [n, rule] of this.rules.entries()) choice.append(h("option", { attrs: { value: n, selected: n === this.number } }, rule.name));
    const tools = PALETTE.map(([kind, label, title]) => {
      const made = button(label, title, () => this.add(kind), { class: "small" });
      made.draggable = kind === "event";
      made.dataset["kind"] = kind;
      if (kind === "event") made.addEventListener("dragstart", (event) => this.drag(event, this.fresh()));
      return made;
    });
    fill(this.bar, choice, button("new rule", "Another rule", () => this.addRule(), { class: "small", id: "new-rule" }), ...tools);
    this.paintRule();
  }

  private paintRule(): void {
    const rule = this.rule;
    if (!rule) {
      fill(this.canvas, h("p", { class: "hint" }, "No rule yet: begin with ‘new rule’."));
      return;
    }
    if (!rule.pattern) {
      fill(this.canvas, h("p", { class: "hint" }, `${rule.name}: ${rule.why ?? "blocks cannot say it"}. It stays text.`));
      return;
    }
    const name = this.field(rule.name, "name", "Name of what is reported", (value) => this.change({ ...rule, name: value }));
    const same = this.field((rule.same ?? []).join(", "), "same", "attributes", (value) =>
      this.change({ ...rule, same: value.split(/[,\s]+/).filter(Boolean) }),
    );
    const rest = this.field(rule.rest ?? "", "rest", "Behind that: with …, if …, at most once every …", (value) => this.change({ ...rule, rest: value }));
    const types = h("datalist", { id: "block-types" }, ...this.known().map((type) => h("option", { attrs: { value: type } })));
    fill(
      this.canvas,
      types,
      h("div", { class: "block-line" }, h("b", {}, rule.manner ?? "Report"), name, h("b", {}, "when")),
      h("div", { class: "drawing" }, this.draw(rule.pattern, [])),
      h("div", { class: "block-line" }, h("b", {}, "for the same"), same),
      h("div", { class: "block-line" }, rest),
    );
  }

  private known(): string[] {
    return [...(now("session")?.events.lanes ?? []), ...(now("run")?.lanes ?? [])].map(([name]) => name);
  }

  private field(value: string, kind: string, title: string, commit: (value: string) => void, list?: string): HTMLInputElement {
    const made = h("input", {
      class: `block-${kind}`,
      title,
      attrs: { value, placeholder: title, "aria-label": title, list, spellcheck: "false", size: Math.max({ rest: 44, same: 14 }[kind] ?? 4, value.length + 1) },
      on: {
        change: () => commit(made.value.trim()),
        click: (event) => event.stopPropagation(),
        keydown: (event) => event.stopPropagation(),
      },
    });
    return made;
  }

  private draw(block: Block, path: Path): HTMLElement {
    const body = this.body(block, path);
    const made = h("div", { class: `block ${block.kind}`, attrs: { tabindex: 0, role: "group", "aria-label": trees.words(block), "data-path": path.join(".") } }, ...body);
    made.draggable = path.length > 0;
    made.classList.toggle("chosen", path.join() === this.chosen.join());
    made.addEventListener("click", (event) => {
      event.stopPropagation();
      this.choose(path);
    });
    made.addEventListener("focus", () => this.choose(path));
    made.addEventListener("keydown", (event) => {
      if (event.key !== "Delete" && event.key !== "Backspace") return;
      event.stopPropagation();
      event.preventDefault();
      this.remove(path);
    });
    made.addEventListener("dragstart", (event) => this.drag(event, path));
    this.receive(made, path);
    return made;
  }

  private choose(path: Path): void {
    this.chosen = path;
    for (const each of this.canvas.querySelectorAll<HTMLElement>(".block")) each.classList.toggle("chosen", each.dataset["path"] === path.join("."));
  }

  private body(block: Block, path: Path): HTMLElement[] {
    const parts = (block.parts ?? []).map((part, n) => this.draw(part, [...path, n]));
    const set = (fields: Partial<Block>): void => this.turn(trees.replaced(this.rule!.pattern!, path, { ...block, ...fields }), path);
    const remove = button("×", "Remove (Del)", () => this.remove(path), { class: "remove" });
    const within = (): HTMLElement => h("label", { class: "chip" }, "within", this.field(block.within ?? "", "within", "time", (value) => set({ within: value })));
    const events = (block.events ?? []).map((event, n) =>
      this.event(event, (changed) => set({ events: (block.events ?? []).map((each, m) => (m === n ? changed : each)) }), false),
    );
    switch (block.kind) {
      case "event":
        return [...this.event(block, (changed) => this.turn(trees.replaced(this.rule!.pattern!, path, changed), path), true), remove];
      case "sequence":
        return [h("div", { class: "pipe-line" }, ...this.piped(block, parts, set)), h("div", { class: "foot" }, within(), remove)];
      case "times": {
        const least = button(block.least ? "at least" : "exactly", "Exactly, or at least", () => set({ least: !block.least }), { class: "small" });
        const count = this.field(String(block.count ?? 2), "count", "how often", (value) => set({ count: Number(value) || 2 }));
        return [...parts, h("div", { class: "foot" }, least, count, "times", within(), remove)];
      }
      case "absent":
        return [...parts, h("div", { class: "foot" }, h("b", { class: "bad" }, "⊘ not followed by"), ...events.flat(), within(), remove)];
      case "without":
        return [...parts, h("div", { class: "foot" }, h("b", { class: "bad" }, "without"), ...events.flat(), remove)];
      case "wait":
        return [...parts, h("div", { class: "foot" }, "then wait", within(), remove)];
      default:
        return [h("div", { class: "kind" }, trees.LABELS[block.kind] ?? block.kind), ...parts, h("div", { class: "foot" }, remove)];
    }
  }

  /** Parts with pipes between them; a click on one turns ‘followed by’ into ‘then’ and back. */
  private piped(block: Block, parts: HTMLElement[], set: (fields: Partial<Block>) => void): HTMLElement[] {
    const word = block.word ?? "followed by";
    const other = word === "then" ? "followed by" : "then";
    return parts.flatMap((part, n) => (n ? [button(word, `${word}; click for ‘${other}’`, () => set({ word: other }), { class: "pipe" }), part] : [part]));
  }

  private event(block: Block, commit: (block: Block) => void, named: boolean): HTMLElement[] {
    const type = this.field(block.type ?? "", "type", "type of event", (value) => commit({ ...block, type: value }), "block-types");
    const where = this.field(block.where ?? "", "where", "where …", (value) => commit({ ...block, where: value }));
    const called = this.field(block.called ?? "", "called", "called …", (value) => commit({ ...block, called: value }));
    return [h("div", { class: "fields" }, type, where, named ? called : "")];
  }

  // Dragging.

  private drag(event: DragEvent, what: Block | Path): void {
    event.stopPropagation();
    this.dragged = what;
    event.dataTransfer?.setData("text/plain", "block");
  }

  private receive(element: HTMLElement, path: Path): void {
    const side = (event: DragEvent): trees.Side => {
      const box = element.getBoundingClientRect();
      if (event.clientY > box.bottom - box.height * 0.25) return "below";
      return event.clientX < box.left + box.width / 2 ? "before" : "behind";
    };
    element.addEventListener("dragover", (event) => {
      if (this.dragged === null) return;
      event.preventDefault();
      event.stopPropagation();
      element.dataset["drop"] = side(event);
    });
    element.addEventListener("dragleave", () => delete element.dataset["drop"]);
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      event.stopPropagation();
      delete element.dataset["drop"];
      this.drop(path, side(event));
    });
  }
}
