/** What stands beside the line of time: why a detection was made, an event, lists and tables. */

import { get, post, type CauseTold, type DetectionTold, type Diagnostic, type Statistics, type Unfinished } from "./api";
import { button, fill, h } from "./dom";
import { say, tried } from "./panels";
import { now, set, when } from "./state";
import { short, told } from "./time";

const PAGE = 200;

export interface Showing {
  detection(number: number): void;
  event(row: number): void;
  reveal(time: number): void;
  span(from: number, to: number): void;
  problem(problem: Diagnostic): void;
  rule(name: string): void;
}

function lastTime(): number {
  return now("session")?.events.span?.[1] ?? 0;
}

export function attributes(record: Record<string, unknown>): HTMLElement {
  const list = h("dl", { class: "attributes" });
  for (const [name, value] of Object.entries(record)) {
    if (["type", "time", "from"].includes(name)) continue;
    list.append(h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value)));
  }
  return list;
}

function spanOf(cause: CauseTold): [number, number] {
  const ends = cause.parts.map(spanOf);
  return [Math.min(cause.lo, ...ends.map(([lo]) => lo)), Math.max(cause.hi, ...ends.map(([, hi]) => hi))];
}

/** The tree of what led to a detection. */
export class CausesView {
  readonly element = h("div", { class: "scroll causes", id: "causes" });

  constructor(private readonly showing: Showing) {
    when(["chosen", "event"], () => this.show());
    this.show();
  }

  private show(): void {
    const chosen = now("chosen");
    if (!chosen) {
      fill(this.element, h("p", { class: "hint" }, "Click a detection ◆ or an event ● on the line of time."));
      return;
    }
    const { detection, causes } = chosen;
    const accept = button(
      detection.accepted ? "✓ expected" : "Expect this",
      "This is what I expect: it goes into the case for `coincide test`",
      tried(() => this.accept(detection)),
      { class: "small", pressed: detection.accepted, id: "accept" },
    );
    const head = h(
      "div",
      { class: "chosen-head" },
      h("b", { class: "found" }, `◆ ${detection.record.type}`),
      h("span", { class: "faint" }, told(detection.hi, lastTime())),
      button(detection.rule, "Show the rule", () => this.showing.rule(detection.rule), { class: "link" }),
      button("zoom", "Show it with all that led to it", () => this.showing.span(...spanOf(causes)), { class: "small", id: "zoom-to" }),
      accept,
    );
    const tree = h("ul", { class: "cause-tree", attrs: { role: "tree", "aria-label": "Causes" } });
    for (const part of causes.parts) tree.append(this.part(part));
    const none = h("p", { class: "hint" }, "It was built from no event: time has passed.");
    const more = causes.left_out ? h("p", { class: "hint" }, `… after ${causes.left_out} others`) : null;
    fill(this.element, head, attributes(detection.record), h("h3", {}, "because of"), more, causes.parts.length ? tree : none);
  }

  private part(cause: CauseTold): HTMLElement {
    const found = cause.row === undefined;
    const open = (): void => {
      this.showing.reveal(cause.hi);
      if (found && typeof cause.detection === "number") this.showing.detection(cause.detection);
      else if (cause.row !== undefined) this.showing.event(cause.row);
    };
    const words = Object.entries(cause.record)
      .filter(([name]) => !["type", "time", "id", "from"].includes(name))
      .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
      .join("  ");
    const line = h(
      "button",
      { class: "cause", attrs: { type: "button" }, on: { click: open } },
      h("span", { class: found ? "found" : "event" }, `${found ? "◆" : "●"} ${cause.type}`),
      h("span", { class: "faint" }, short(cause.hi, lastTime())),
      h("span", { class: "values" }, words),
      cause.note ? h("span", { class: "cause-note" }, cause.note) : null,
    );
    const item = h("li", { attrs: { role: "treeitem" } }, line);
    if (cause.parts.length) item.append(h("ul", { attrs: { role: "group" } }, ...cause.parts.map((part) => this.part(part))));
    return item;
  }

  private async accept(detection: DetectionTold): Promise<void> {
    await post("accept", { numbers: [detection.number], accepted: !detection.accepted });
    const chosen = now("chosen");
    if (chosen) set("chosen", { ...chosen, detection: { ...detection, accepted: !detection.accepted } });
  }
}

/** All detections, page by page. */
export class DetectionsView {
  readonly element = h("div", { class: "scroll", id: "detections" });
  private first = 0;
  private kind = "";

  constructor(private readonly showing: Showing) {
    when(["chosen"], () => this.mark());
  }

  async show(): Promise<void> {
    const run = now("run");
    if (!run || !run.number || !run.detections) {
      fill(this.element, h("p", { class: "hint" }, run?.number ? "Nothing was detected." : "Run the rules first."));
      return;
    }
    const query = { first: this.first, limit: PAGE, type: this.kind || undefined };
    const { total, detections } = await get<{ total: number; detections: DetectionTold[] }>("detections", query);
    fill(this.element, this.bar(total), h("ul", { class: "list" }, ...detections.map((each) => this.line(each))));
    this.mark();
  }

  private bar(total: number): HTMLElement {
    const kinds = now("run")?.lanes.map(([name]) => name) ?? [];
    const choice = h("select", {
      attrs: { "aria-label": "Type" },
      on: { change: () => ((this.kind = choice.value), (this.first = 0), tried(() => this.show())()) },
    });
    for (const kind of ["", ...kinds]) choice.append(h("option", { attrs: { value: kind, selected: kind === this.kind } }, kind || "all types"));
    const move = (by: number): void => {
      this.first = Math.max(0, this.first + by);
      tried(() => this.show())();
    };
    const end = Math.min(total, this.first + PAGE);
    return h(
      "div",
      { class: "bar" },
      choice,
      h("span", { class: "faint" }, `${(this.first + 1).toLocaleString("en")}–${end.toLocaleString("en")} of ${total.toLocaleString("en")}`),
      this.first > 0 && button("‹", "Earlier ones", () => move(-PAGE), { class: "small" }),
      end < total && button("›", "Later ones", () => move(PAGE), { class: "small" }),
      button("Expect all", "All of this run are what I expect", tried(() => this.acceptAll()), { class: "small", id: "accept-all" }),
    );
  }

  private async acceptAll(): Promise<void> {
    const { accepted } = await post<{ accepted: number }>("accept", { numbers: null, accepted: true });
    say(`${accepted.toLocaleString("en")} detections are expected`);
    await this.show();
  }

  private line(each: DetectionTold): HTMLElement {
    const words = Object.entries(each.record)
      .filter(([name]) => !["type", "time", "from"].includes(name))
      .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
      .join("  ");
    const open = (): void => {
      this.showing.reveal(each.hi);
      this.showing.detection(each.number);
    };
    return h(
      "li",
      { attrs: { "data-number": each.number } },
      h(
        "button",
        { class: "cause", attrs: { type: "button" }, on: { click: open } },
        h("span", { class: "found" }, `◆ ${each.record.type}`),
        h("span", { class: "faint" }, told(each.hi, lastTime())),
        h("span", { class: "values" }, words),
        each.accepted ? h("span", { class: "cause-note" }, "✓ expected") : null,
      ),
    );
  }

  private mark(): void {
    const chosen = String(now("chosen")?.detection.number ?? "");
    for (const line of this.element.querySelectorAll<HTMLElement>("[data-number]")) {
      line.classList.toggle("chosen", line.dataset["number"] === chosen);
    }
  }
}

/** What the rule has begun and not ended where the replay stands. A click on a key lights the picture for that one. */
export class UnderWayView {
  readonly element = h("div", { class: "scroll", id: "under-way" });

  constructor(private readonly chosen: () => void) {
    when(["moment", "key"], () => this.show());
    this.show();
  }

  private show(): void {
    const moment = now("moment");
    if (!moment) {
      fill(this.element, h("p", { class: "hint" }, "Step through the run: what the rule has begun and not ended stands here."));
      return;
    }
    const key = now("key");
    const all = button("all keys", "Light the picture for all keys", () => this.choose(null), { class: "small" });
    const rule = now("rule") ?? "";
    const head = h("div", { class: "bar" }, h("b", {}, rule), h("span", { class: "faint" }, `${moment.counts[rule] ?? 0} under way`), key ? all : null);
    const lines = moment.unfinished.filter((each) => each.rule === rule).map((each) => this.line(each, key));
    fill(this.element, head, lines.length ? h("ul", { class: "list" }, ...lines) : h("p", { class: "hint" }, "Nothing is under way."));
  }

  private line(each: Unfinished, key: string[] | null): HTMLElement {
    const own = each.key.map(String);
    const since = each.since === null ? null : h("span", { class: "faint" }, `since ${short(each.since, lastTime())}`);
    const due = each.due === null ? null : h("span", { class: "cause-note" }, `due ${short(each.due, lastTime())}`);
    const act = (): void => this.choose(own.length ? own : null);
    const words = h("button", { class: "cause", attrs: { type: "button" }, on: { click: act } }, h("b", {}, own.join(", ") || "–"), h("span", {}, each.what), since, due);
    return h("li", { class: key && key.join() === own.join() ? "chosen" : "" }, words);
  }

  private choose(key: string[] | null): void {
    set("key", key);
    this.chosen();
  }
}

export class ProblemsView {
  readonly element = h("div", { class: "scroll", id: "problems" });

  constructor(private readonly showing: Showing) {
    when(["checked", "run"], () => this.show());
  }

  get all(): Diagnostic[] {
    const run = now("run");
    return [...(now("checked")?.diagnostics ?? []), ...(run?.failure ?? []), ...(run?.warnings ?? [])];
  }

  private show(): void {
    const found = this.all;
    if (!found.length) {
      fill(this.element, h("p", { class: "hint" }, "There is nothing to complain about."));
      return;
    }
    fill(this.element, h("ul", { class: "list" }, ...found.map((each) => this.line(each))));
  }

  private line(each: Diagnostic): HTMLElement {
    const place = each.file ? `${each.file}:${each.line}:${each.column}` : "";
    return h(
      "li",
      {},
      h(
        "button",
        { class: `cause ${each.severity}`, attrs: { type: "button" }, on: { click: () => this.showing.problem(each) } },
        h("span", { class: "severity" }, each.severity),
        h("span", { class: "values" }, each.message),
        each.hint ? h("span", { class: "cause-note" }, each.hint) : null,
        h("span", { class: "faint" }, place),
      ),
    );
  }
}

/** A line a rule. */
export class StatisticsView {
  readonly element = h("div", { class: "scroll", id: "statistics" });

  constructor(private readonly showing: Showing) {}

  async show(): Promise<void> {
    if (!now("run")?.number) {
      fill(this.element, h("p", { class: "hint" }, "Run the rules first."));
      return;
    }
    const { rules } = await get<{ rules: Statistics[] }>("statistics");
    const heads = ["rule", "language", "stage", "key", "reads", "detections", "keys", "under way", "last"];
    const head = h("tr", {}, ...heads.map((text) => h("th", { attrs: { scope: "col" } }, text)));
    const body = rules.map((each) =>
      h(
        "tr",
        {},
        h("th", { attrs: { scope: "row" } }, button(each.rule, "Show the rule", () => this.showing.rule(each.rule), { class: "link" })),
        h("td", {}, each.language),
        h("td", { class: "number" }, each.stage),
        h("td", {}, each.key.join(", ") || "–"),
        h("td", { class: "number" }, each.reads.toLocaleString("en")),
        h("td", { class: "number" }, each.detections.toLocaleString("en")),
        h("td", { class: "number" }, each.keys === null ? "–" : each.keys.toLocaleString("en")),
        h("td", { class: "number" }, each.under_way.toLocaleString("en")),
        h("td", {}, each.last === null ? "–" : short(each.last, lastTime())),
      ),
    );
    fill(this.element, h("table", { class: "statistics" }, h("thead", {}, head), h("tbody", {}, ...body)));
  }
}
