/** Near misses, on demand: why the rule has made no detection, for a key and in a time. */

import { post, type Record_ } from "./api";
import { button, fill, h } from "./dom";
import { tried } from "./panels";
import { now, when } from "./state";
import { told } from "./time";

interface Miss {
  text: string;
  distance: number;
  matched: Record_[];
  lacks: { text: string }[];
  conditions: string[];
}

interface Answer {
  rule: string;
  detections: unknown[];
  misses: Miss[];
  lacking: string[];
  events: number;
  text: string;
}

export class NearView {
  readonly element: HTMLElement;
  private readonly asked = h("div", { class: "bar" });
  private readonly answer = h("div", { class: "scroll near", id: "near" });
  private readonly key = h("input", {
    id: "near-key",
    title: "For this key only, such as user=eve; several: user=eve, host=db1",
    attrs: { placeholder: "key: attribute=value", "aria-label": "Key", spellcheck: "false" },
    on: { keydown: (event) => event.key === "Enter" && this.ask() },
  });

  constructor(private readonly reveal: (time: number) => void) {
    this.element = h("div", { class: "stack" }, this.asked, this.answer);
    when(["rule", "window", "run"], () => this.head());
    this.head();
    fill(this.answer, h("p", { class: "hint" }, "Why was nothing detected? Choose a rule, give a key, mark a stretch of time (Shift and drag), and ask."));
  }

  private head(): void {
    const window_ = now("window");
    const when_ = window_ ? "in the marked time" : "at any time";
    const ask = button("Why not?", "Look for near misses", () => this.ask(), { class: "small", id: "ask-near" });
    fill(this.asked, h("b", {}, now("rule") ?? "–"), this.key, ask, h("span", { class: "faint" }, when_));
  }

  private ask(): void {
    tried(async () => {
      const parts = this.key.value.split(",").map((part) => part.trim()).filter(Boolean);
      const key = Object.fromEntries(parts.map((part) => [part.slice(0, part.indexOf("=")).trim(), part.slice(part.indexOf("=") + 1).trim()]));
      fill(this.answer, h("p", { class: "hint" }, "looking …"));
      try {
        this.show(await post<Answer>("near", { rule: now("rule") ?? "", key, span: now("window") }));
      } catch (error) {
        fill(this.answer, h("p", { class: "hint" }, error instanceof Error ? error.message : String(error)));
      }
    })();
  }

  private show(answer: Answer): void {
    if (answer.detections.length) {
      const count = answer.detections.length;
      fill(this.answer, h("p", { class: "hint" }, `It did: there ${count === 1 ? "is 1 detection" : `are ${count} detections`}.`));
      return;
    }
    const missing = answer.lacking.length ? h("p", { class: "hint" }, `No event has the type ${answer.lacking.join(", ")}.`) : null;
    const none = h("p", { class: "hint" }, `Nothing came near, among ${answer.events.toLocaleString("en")} events.`);
    const list = h("ol", { class: "misses" }, ...answer.misses.map((miss) => this.miss(miss)));
    fill(this.answer, missing, answer.misses.length ? list : none);
  }

  private miss(miss: Miss): HTMLElement {
    const last = now("session")?.events.span?.[1] ?? 0;
    const events = miss.matched.map((record) => {
      const time = Number(Array.isArray(record["time"]) ? record["time"][1] : record["time"]) * 1000;
      const words = `● ${record.type}`;
      const open = (): void => this.reveal(time);
      return h("li", {}, h("button", { class: "cause", attrs: { type: "button" }, on: { click: open } }, h("span", { class: "event" }, words), h("span", { class: "faint" }, told(time, last))));
    });
    const lacks = miss.lacks.map((lack) => h("li", { class: "lack" }, `✗ ${lack.text}`));
    const conditions = miss.conditions.map((text) => h("li", { class: "faint" }, text));
    return h("li", {}, h("ul", { class: "list" }, ...events, ...lacks, ...conditions));
  }
}
