/** Events and detections on a line of time. A frame draws what is known: counts where there are many, single ones where there
 * are few; what is not known yet is asked for, and drawn when it comes. */

import { get, type CauseTold, type Lane, type Marks } from "./api";
import { h, later } from "./dom";
import { now, set, when } from "./state";
import { CanvasSurface, SvgSurface, type Surface } from "./surface";
import { colours } from "./theme";
import { BUCKETS, Tiles } from "./tiles";
import { duration, short, ticks, told, type Tick } from "./time";

const LABELS = 186;
const AXIS = 22;
const OVERVIEW = 30;
const HEAD = 18;
const LANE = 19;
const FEW = 2_500;
const SHORTEST = 20;

type Layer = "detections" | "events";

interface Row {
  kind: "head" | "lane";
  layer: Layer;
  lane: number;
  name: string;
  count: number;
  y: number;
  height: number;
}

interface Singles {
  from: number;
  to: number;
  rows: number[];
  lanes: number[];
  lo: number[];
  hi: number[];
}

interface Hit {
  layer: Layer;
  row: number;
  lane: number;
  x: number;
  y: number;
}

interface Lit {
  type: string;
  hi: number;
  found: boolean;
}

export interface Actions {
  detection(number: number): void;
  event(row: number): void;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  from = 0;
  to = 1;
  follows = false;
  private readonly tip: HTMLElement;
  private readonly on: CanvasRenderingContext2D;
  private readonly tiles: Record<Layer, Tiles>;
  private readonly singles: Record<Layer, Singles | null> = { detections: null, events: null };
  private readonly hidden: Record<Layer, Set<string>> = { detections: new Set(), events: new Set() };
  private width = 800;
  private height = 300;
  private scrolled = 0;
  private waiting = false;
  private hit: Hit | null = null;
  private lit: Lit[] = [];
  private filter = "";
  private brush: { from: number; to: number } | null = null;
  private readonly askSingles = later(90, () => void this.fetchSingles());

  constructor(private readonly actions: Actions) {
    this.canvas = h("canvas", {
      class: "timeline",
      attrs: { tabindex: 0, role: "img", "aria-label": "Line of time: events by type, and detections" },
    });
    this.tip = h("div", { class: "tip", attrs: { hidden: true } });
    this.element = h("div", { class: "timeline-box" }, this.canvas, this.tip);
    this.on = this.canvas.getContext("2d")!;
    const arrived = (): void => {
      this.draw();
      this.askSingles();
    };
    this.tiles = { detections: new Tiles("detections", arrived), events: new Tiles("events", arrived) };
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.listen();
    when(["moment", "window"], () => this.draw());
    when(["chosen"], () => this.light());
  }

  // What is shown.

  private lanes(layer: Layer): Lane[] {
    return (layer === "events" ? now("session")?.events.lanes : now("run")?.lanes) ?? [];
  }

  private get span(): [number, number] {
    return now("session")?.events.span ?? [0, 1];
  }

  private get last(): number {
    return this.span[1];
  }

  /** All of it. */
  fit(): void {
    const [first, last] = this.span;
    const room = Math.max(SHORTEST, (last - first) * 0.015);
    this.show(first - room, last + room);
  }

  show(from: number, to: number): void {
    const [first, last] = this.span;
    const widest = Math.max(SHORTEST, (last - first) * 1.5);
    const size = Math.min(widest, Math.max(SHORTEST, to - from));
    const middle = (from + to) / 2;
    const least = Math.max(0, first - widest * 0.4);
    this.from = Math.max(least, Math.min(last + widest * 0.4 - size, middle - size / 2));
    this.to = this.from + size;
    this.askSingles();
    this.draw();
  }

  /** Around a time: what is chosen, if it is in view, or else the middle. */
  zoom(factor: number, around?: number): void {
    const chosen = now("chosen")?.detection.hi ?? now("moment")?.clock ?? -1;
    const seen = chosen > this.from && chosen < this.to;
    const at = around ?? (seen ? chosen : (this.from + this.to) / 2);
    const share = (at - this.from) / (this.to - this.from);
    const size = Math.max(SHORTEST, (this.to - this.from) * factor);
    this.show(at - share * size, at + (1 - share) * size);
  }

  pan(share: number): void {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  /** Let a time be seen. */
  reveal(time: number): void {
    if (time < this.from || time > this.to) {
      const half = (this.to - this.from) / 2;
      this.show(time - half, time + half);
    }
  }

  /** Let a stretch of time be seen, with some room beside it. */
  around(from: number, to: number): void {
    const room = Math.max(1_000, (to - from) * 0.25);
    this.follows = false;
    this.show(from - room, to + room);
  }

  /** Other events, or another run. */
  renew(layer: Layer): void {
    this.tiles[layer].forget();
    this.singles[layer] = null;
    if (layer === "events") this.hidden.events.clear();
    this.askSingles();
    this.draw();
  }

  /** More events, or detections, behind a time. */
  extend(from: number): void {
    for (const layer of ["events", "detections"] as const) this.tiles[layer].outdate(from);
    this.singles.events = this.singles.detections = null;
    if (this.follows) {
      const size = this.to - this.from;
      this.show(this.last + size * 0.03 - size, this.last + size * 0.03);
    }
    this.askSingles();
    this.draw();
  }

  filterBy(text: string): void {
    this.filter = this.tiles.events.filter = /^[^=]+=/.test(text) ? text : "";
    this.tiles.events.forget();
    this.singles.events = null;
    this.askSingles();
    this.draw();
  }

  private light(): void {
    const chosen = now("chosen");
    const found = new Map<string, Lit>();
    const walk = (cause: CauseTold): void => {
      found.set(`${cause.type} ${cause.hi} ${cause.row ?? cause.detection}`, {
        type: cause.type,
        hi: cause.hi,
        found: cause.row === undefined,
      });
      cause.parts.forEach(walk);
    };
    if (chosen) walk(chosen.causes);
    this.lit = [...found.values()];
    this.draw();
  }

  // Where things are.

  private x(time: number): number {
    return LABELS + ((time - this.from) / (this.to - this.from)) * this.plotWidth;
  }

  private time(x: number): number {
    return this.from + ((x - LABELS) / this.plotWidth) * (this.to - this.from);
  }

  private get plotWidth(): number {
    return Math.max(50, this.width - LABELS - 10);
  }

  private rows(): Row[] {
    const found: Row[] = [];
    let y = AXIS - this.scrolled;
    for (const layer of ["detections", "events"] as const) {
      const lanes = this.lanes(layer);
      found.push({ kind: "head", layer, lane: -1, name: layer, count: lanes.reduce((sum, lane) => sum + lane[1], 0), y, height: HEAD });
      y += HEAD;
      for (const [lane, [name, count]] of lanes.entries()) {
        found.push({ kind: "lane", layer, lane, name, count, y, height: LANE });
        y += LANE;
      }
      y += 4;
    }
    return found;
  }

  private rowAt(y: number): Row | undefined {
    return this.rows().find((row) => y >= row.y && y < row.y + row.height);
  }

  private get content(): number {
    const rows = this.rows();
    const last = rows[rows.length - 1];
    return last ? last.y + last.height + this.scrolled - AXIS : 0;
  }

  private scroll(by: number): void {
    const room = this.height - AXIS - OVERVIEW;
    this.scrolled = Math.max(0, Math.min(this.content - room + 8, this.scrolled + by));
    this.draw();
  }

  // Drawing.

  private resize(): void {
    const box = this.element.getBoundingClientRect();
    this.width = Math.max(200, box.width);
    this.height = Math.max(80, box.height);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.scroll(0);
  }

  /** In the next frame. */
  draw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const ratio = window.devicePixelRatio || 1;
      this.on.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.paint(new CanvasSurface(this.on));
      this.tell();
    });
  }

  /** What is in view, for whoever cannot see it. */
  private tell(): void {
    const single = (layer: Layer): string => String(this.singles[layer] !== null);
    const told_ = { from: String(Math.round(this.from)), to: String(Math.round(this.to)), single: single("events") };
    Object.assign(this.canvas.dataset, told_, { frames: String(Number(this.canvas.dataset["frames"] ?? 0) + 1) });
  }

  /** As a picture. */
  svg(): SVGElement {
    const surface = new SvgSurface(this.width, this.height, "coincide: line of time");
    this.paint(surface);
    return surface.root;
  }

  private paint(on: Surface): void {
    const c = colours();
    on.rect(0, 0, this.width, this.height, c.paper);
    const bottom = this.height - OVERVIEW;
    this.paintGrid(on, bottom);
    on.clipped(0, AXIS, this.width, bottom - AXIS, () => {
      for (const row of this.rows()) {
        if (row.y + row.height >= AXIS && row.y <= bottom) this.paintRow(on, row);
      }
      this.paintLit(on);
    });
    if (!this.lanes("events").length) {
      on.text(LABELS + 16, AXIS + 58, "No events yet: choose a file of events on the left, or begin with --events FILE.", c.faint);
      return;
    }
    this.paintAxis(on, bottom);
    this.paintClock(on, bottom);
    this.paintWindow(on, bottom);
    this.paintOverview(on, bottom);
  }

  private get ticks(): Tick[] {
    return ticks(this.from, this.to, this.plotWidth / 90).filter((tick) => this.x(tick.at) >= LABELS);
  }

  private paintGrid(on: Surface, bottom: number): void {
    for (const tick of this.ticks) on.line(this.x(tick.at), AXIS - 4, this.x(tick.at), bottom, colours().line);
  }

  private paintAxis(on: Surface, bottom: number): void {
    const c = colours();
    for (const tick of this.ticks) on.text(this.x(tick.at) + 4, AXIS / 2, tick.label, c.faint);
    on.line(0, AXIS - 0.5, this.width, AXIS - 0.5, c.line);
    on.line(LABELS - 0.5, 0, LABELS - 0.5, bottom, c.line);
  }

  private paintRow(on: Surface, row: Row): void {
    const c = colours();
    const middle = row.y + row.height / 2;
    if (row.kind === "head") {
      on.rect(0, row.y, this.width, row.height, c.band);
      on.text(10, middle, row.layer.toUpperCase(), c.faint, { bold: true });
      on.text(LABELS - 10, middle, row.count.toLocaleString("en"), c.faint, { end: true });
      return;
    }
    const hidden = this.hidden[row.layer].has(row.name);
    on.text(10, middle, row.name, hidden ? c.faint : c.ink, { most: LABELS - 78 });
    on.text(LABELS - 10, middle, hidden ? "hidden" : row.count.toLocaleString("en"), c.faint, { end: true });
    on.line(LABELS, row.y + row.height - 0.5, this.width, row.y + row.height - 0.5, c.line);
    if (hidden) return;
    on.clipped(LABELS, row.y, this.width - LABELS, row.height, () => {
      const singles = this.singles[row.layer];
      if (singles && singles.from <= this.from && singles.to >= this.to) this.paintSingles(on, row, singles);
      else this.paintCounts(on, row);
    });
  }

  private paintCounts(on: Surface, row: Row): void {
    const c = colours();
    const colour = row.layer === "events" ? c.event : c.found;
    const base = row.y + row.height - 1;
    const most = Math.log1p(this.highest(row.layer));
    this.buckets(row.layer, (counts, from, width, first, end) => {
      const begin = row.lane * BUCKETS;
      const pixels = (width / (this.to - this.from)) * this.plotWidth;
      for (let n = first; n < end; n++) {
        const count = counts[begin + n];
        if (!count) continue;
        const x = this.x(from + n * width);
        if (x + pixels < LABELS || x > this.width) continue;
        const height = 3 + ((row.height - 6) * Math.log1p(count)) / most;
        on.rect(x, base - height, Math.max(1.2, pixels - 0.4), height, colour);
      }
    });
  }

  /** The counts of all tiles in view; what is not there yet by those that stand in. */
  private buckets(layer: Layer, use: (counts: Uint32Array, from: number, width: number, first: number, end: number) => void): boolean {
    const level = Tiles.level((this.to - this.from) / this.plotWidth);
    const size = BUCKETS * 2 ** level;
    const first = Math.max(0, Math.floor(this.from / size));
    const last = Math.max(0, Math.floor(this.to / size));
    let complete = true;
    for (let index = first; index <= last; index++) {
      const tile = this.tiles[layer].tile(level, index);
      const shown = tile.counts ? tile : this.tiles[layer].standIn(level, index);
      complete &&= tile.counts !== null;
      if (!shown?.counts) continue;
      const share = 2 ** (shown.level - level); // of a stand-in only the part in the place of this tile counts
      const begin = ((index % share) * BUCKETS) / share;
      use(shown.counts, shown.index * BUCKETS * 2 ** shown.level, 2 ** shown.level, begin, begin + BUCKETS / share);
    }
    return complete;
  }

  private highest(layer: Layer): number {
    let most = 1;
    this.buckets(layer, (counts, _from, _width, first, end) => {
      for (let begin = 0; begin < counts.length; begin += BUCKETS) {
        for (let n = first; n < end; n++) most = Math.max(most, counts[begin + n] ?? 0);
      }
    });
    return most;
  }

  /** How many are in view; null: it is not known yet. */
  private inView(layer: Layer): number | null {
    let sum = 0;
    const hidden = this.lanes(layer).map(([name]) => this.hidden[layer].has(name));
    const complete = this.buckets(layer, (counts, from, width, first, end) => {
      const a = Math.max(first, Math.floor((this.from - from) / width));
      const b = Math.min(end, Math.ceil((this.to - from) / width));
      for (let lane = 0; lane * BUCKETS < counts.length; lane++) {
        if (hidden[lane]) continue;
        for (let n = a; n < b; n++) sum += counts[lane * BUCKETS + n] ?? 0;
      }
    });
    return complete ? sum : null;
  }

  private async fetchSingles(): Promise<void> {
    for (const layer of ["detections", "events"] as const) {
      const known = this.singles[layer];
      const size = this.to - this.from;
      if (known && known.from <= this.from && known.to >= this.to) {
        const count = this.inView(layer);
        if (count !== null && count > FEW) this.forgetSingles(layer);
        continue;
      }
      if (!this.lanes(layer).length) continue;
      const count = this.inView(layer);
      if (count === null || count > FEW) {
        if (count !== null) this.forgetSingles(layer);
        continue;
      }
      const [from, to] = [Math.max(0, Math.floor(this.from - size * 0.4)), Math.ceil(this.to + size * 0.4)];
      const hidden = this.lanes(layer).flatMap(([name], lane) => (this.hidden[layer].has(name) ? [lane] : []));
      const filter = layer === "events" ? this.filter || undefined : undefined;
      const { marks } = await get<Marks>("marks", { layer, from, to, hidden: hidden.join(","), filter });
      this.singles[layer] = marks && { from, to, rows: marks[0], lanes: marks[1], lo: marks[2], hi: marks[3] };
      this.draw();
    }
  }

  private forgetSingles(layer: Layer): void {
    this.singles[layer] = null;
    this.draw();
  }

  private paintSingles(on: Surface, row: Row, singles: Singles): void {
    const c = colours();
    const middle = row.y + row.height / 2;
    const chosen = now("chosen")?.detection.number;
    for (let n = 0; n < singles.rows.length; n++) {
      if (singles.lanes[n] !== row.lane) continue;
      const x = this.x(singles.hi[n]!);
      const begin = this.x(singles.lo[n]!);
      if (x < LABELS - 8 || begin > this.width + 8) continue;
      if (row.layer === "events") {
        if (x - begin > 3) on.rect(begin, middle - 3, x - begin, 6, c.event, 3);
        else on.circle(x, middle, 3.2, c.event);
      } else {
        if (x - begin > 3) on.line(begin, middle, x, middle, c.found, 2);
        on.diamond(x, middle, 6, c.found, singles.rows[n] === chosen ? c.ink : undefined);
      }
    }
    if (this.hit && this.hit.layer === row.layer && this.hit.lane === row.lane) on.circle(this.hit.x, middle, 8, "transparent", c.ink);
  }

  private place(lit: Lit): [number, number] | null {
    const layer = lit.found ? "detections" : "events";
    const row = this.rows().find((each) => each.kind === "lane" && each.layer === layer && each.name === lit.type);
    return row ? [this.x(lit.hi), row.y + row.height / 2] : null;
  }

  /** What led to the chosen detection, with threads to it. */
  private paintLit(on: Surface): void {
    const chosen = now("chosen");
    if (!chosen) return;
    const c = colours();
    const at = this.place({ type: chosen.detection.record.type, hi: chosen.detection.hi, found: true });
    if (!at) return;
    on.clipped(LABELS, AXIS, this.width - LABELS, this.height - AXIS - OVERVIEW, () => {
      const places = this.lit.map((lit) => ({ lit, at: this.place(lit) })).filter((each) => each.at !== null);
      for (const { at: end } of places) {
        if (end && end !== at) on.curve(end[0], end[1], at[0], at[1], c.lit, 1.4);
      }
      for (const { lit, at: end } of places) {
        if (!lit.found && end) on.circle(end[0], end[1], 5.2, c.lit, c.ink);
      }
      on.diamond(at[0], at[1], 7.5, c.found, c.ink);
    });
  }

  private paintClock(on: Surface, bottom: number): void {
    const clock = now("moment")?.clock;
    if (clock === null || clock === undefined) return;
    const c = colours();
    const x = Math.max(LABELS, Math.min(this.width, this.x(clock)));
    on.rect(x, AXIS, Math.max(0, this.width - x), bottom - AXIS, c.brush);
    on.line(x, 0, x, bottom, c.clock, 2);
    on.rect(x + 3, 2, 90, AXIS - 5, c.clock, 3);
    on.text(x + 8, AXIS / 2, short(clock, this.last).slice(0, 12), c.paper, { bold: true });
  }

  private paintWindow(on: Surface, bottom: number): void {
    const shown = this.brush ?? (now("window") && { from: now("window")![0], to: now("window")![1] });
    if (!shown) return;
    const c = colours();
    const [a, b] = [Math.max(LABELS, this.x(Math.min(shown.from, shown.to))), Math.min(this.width, this.x(Math.max(shown.from, shown.to)))];
    if (b <= a) return;
    on.rect(a, AXIS, b - a, bottom - AXIS, c.brush);
    on.line(a, AXIS, a, bottom, c.clock, 1, [4, 3]);
    on.line(b, AXIS, b, bottom, c.clock, 1, [4, 3]);
    on.text(a + 5, bottom - 9, duration(Math.abs(shown.to - shown.from)), c.clock, { bold: true });
  }

  /** The whole, with the part that is in view. */
  private paintOverview(on: Surface, top: number): void {
    const c = colours();
    const [first, last] = this.span;
    const size = Math.max(1, last - first);
    const place = (time: number): number => LABELS + ((time - first) / size) * this.plotWidth;
    on.rect(0, top, this.width, OVERVIEW, c.band);
    on.line(0, top + 0.5, this.width, top + 0.5, c.line);
    on.text(10, top + OVERVIEW / 2, `${duration(this.to - this.from)} in view`, c.faint, { most: LABELS - 20 });
    this.paintWhole(on, top, place);
    const [a, b] = [Math.max(LABELS, place(this.from)), Math.min(LABELS + this.plotWidth, place(this.to))];
    on.rect(a, top + 1, Math.max(3, b - a), OVERVIEW - 2, c.brush);
    on.line(a, top + 1, a, top + OVERVIEW, c.clock, 1.5);
    on.line(Math.max(a + 3, b), top + 1, Math.max(a + 3, b), top + OVERVIEW, c.clock, 1.5);
  }

  private paintWhole(on: Surface, top: number, place: (time: number) => number): void {
    const c = colours();
    const [first, last] = this.span;
    const level = Tiles.level((last - first) / (this.plotWidth / 2));
    const size = BUCKETS * 2 ** level;
    const sums = new Map<number, number>();
    for (let index = Math.floor(first / size); index <= Math.floor(last / size); index++) {
      const counts = this.tiles.events.tile(level, index).counts;
      if (!counts) continue;
      for (let n = 0; n < counts.length; n++) {
        const count = counts[n]!;
        if (count) sums.set(index * BUCKETS + (n % BUCKETS), (sums.get(index * BUCKETS + (n % BUCKETS)) ?? 0) + count);
      }
    }
    const most = Math.log1p(Math.max(1, ...sums.values()));
    const pixels = Math.max(1, place(first + 2 ** level) - place(first));
    for (const [bucket, count] of sums) {
      const height = 2 + ((OVERVIEW - 8) * Math.log1p(count)) / most;
      on.rect(place(bucket * 2 ** level), top + OVERVIEW - height, Math.max(1, pixels - 0.5), height, c.event);
    }
  }

  // Hands.

  private listen(): void {
    let drag: { x: number; y: number; from: number; to: number; moved: boolean; what: "pan" | "brush" | "overview" } | null = null;
    this.canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.offsetX < LABELS) return;
      this.canvas.setPointerCapture(event.pointerId);
      const overview = event.offsetY > this.height - OVERVIEW;
      const what = overview ? "overview" : event.shiftKey ? "brush" : "pan";
      drag = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, moved: false, what };
      if (overview) this.moveTo(event.offsetX);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!drag) {
        this.point(event.offsetX, event.offsetY);
        return;
      }
      drag.moved ||= Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 3;
      if (!drag.moved) return;
      if (drag.what === "overview") this.moveTo(event.offsetX);
      else if (drag.what === "brush") {
        this.brush = { from: this.time(drag.x), to: this.time(event.offsetX) };
        this.draw();
      } else {
        const by = ((event.offsetX - drag.x) / this.plotWidth) * (drag.to - drag.from);
        this.follows = false;
        this.show(drag.from - by, drag.to - by);
      }
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const ended = drag;
      drag = null;
      if (this.brush) this.brushed();
      else if (ended && !ended.moved && ended.what === "brush") set("window", null);
      else if (ended && !ended.moved && ended.what === "pan") this.click();
      else if (!ended && event.offsetX < LABELS) this.toggle(event.offsetY);
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const row = this.rowAt(event.offsetY);
      if (event.offsetX < LABELS && row?.kind === "lane") this.solo(row.layer, row.name);
      else if (event.offsetX >= LABELS && event.offsetY < this.height - OVERVIEW) this.zoom(0.25, this.time(event.offsetX));
    });
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private wheeled(event: WheelEvent): void {
    event.preventDefault();
    if (event.offsetX < LABELS) this.scroll(event.deltaY);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.follows = false;
      this.pan((event.deltaX || event.deltaY) / this.plotWidth);
    } else this.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * 0.003), this.time(event.offsetX));
  }

  private moveTo(x: number): void {
    const [first, last] = this.span;
    const half = (this.to - this.from) / 2;
    const at = first + ((x - LABELS) / this.plotWidth) * (last - first);
    this.follows = false;
    this.show(at - half, at + half);
  }

  private brushed(): void {
    const { from, to } = this.brush!;
    this.brush = null;
    set("window", [Math.floor(Math.min(from, to)), Math.ceil(Math.max(from, to))]);
  }

  private toggle(y: number): void {
    const row = this.rowAt(y);
    if (!row || row.kind === "head") return;
    const hidden = this.hidden[row.layer];
    if (!hidden.delete(row.name)) hidden.add(row.name);
    this.singles[row.layer] = null;
    this.askSingles();
    this.draw();
  }

  /** Show one type only; again: all. */
  solo(layer: Layer, name: string): void {
    const others = this.lanes(layer).map(([other]) => other).filter((other) => other !== name);
    const alone = others.every((other) => this.hidden[layer].has(other));
    this.hidden[layer].clear();
    if (!alone) others.forEach((other) => this.hidden[layer].add(other));
    this.singles[layer] = null;
    this.askSingles();
    this.draw();
  }

  private point(x: number, y: number): void {
    const row = this.rowAt(y);
    const before = this.hit;
    this.hit = row && row.kind === "lane" && x >= LABELS && y < this.height - OVERVIEW ? this.nearest(row, x) : null;
    this.canvas.classList.toggle("on-mark", this.hit !== null);
    if (this.hit) void this.describe(this.hit);
    else this.tip.hidden = true;
    if (before?.row !== this.hit?.row || before?.layer !== this.hit?.layer) this.draw();
  }

  private nearest(row: Row, x: number): Hit | null {
    const singles = this.singles[row.layer];
    if (!singles || this.hidden[row.layer].has(row.name)) return null;
    let best: Hit | null = null;
    for (let n = 0; n < singles.rows.length; n++) {
      const at = this.x(singles.hi[n]!);
      if (singles.lanes[n] !== row.lane || Math.abs(at - x) > 8) continue;
      if (!best || Math.abs(at - x) <= Math.abs(best.x - x)) {
        best = { layer: row.layer, row: singles.rows[n]!, lane: row.lane, x: at, y: row.y + row.height / 2 };
      }
    }
    return best;
  }

  private async describe(hit: Hit): Promise<void> {
    const singles = this.singles[hit.layer];
    if (!singles) return;
    const lane = this.lanes(hit.layer)[hit.lane]?.[0] ?? "";
    const n = singles.rows.indexOf(hit.row);
    const at = told(singles.hi[n] ?? 0, this.last);
    let more = "";
    if (hit.layer === "events") {
      const { record } = await get<{ record: Record<string, unknown> }>("event", { row: hit.row }).catch(() => ({ record: {} }));
      more = Object.entries(record)
        .filter(([name]) => !["type", "time", "id"].includes(name))
        .map(([name, value]) => `${name} = ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .slice(0, 8)
        .join("\n");
    }
    if (this.hit?.row !== hit.row || this.hit.layer !== hit.layer) return;
    this.tip.textContent = [`${lane}  ${at}`, more].filter(Boolean).join("\n");
    this.tip.hidden = false;
    this.tip.style.left = `${Math.min(hit.x + 12, this.width - 240)}px`;
    this.tip.style.top = `${Math.max(4, Math.min(hit.y + 12, this.height - 110))}px`;
  }

  private leave(): void {
    this.tip.hidden = true;
    if (this.hit) {
      this.hit = null;
      this.draw();
    }
  }

  private click(): void {
    if (!this.hit) return;
    if (this.hit.layer === "detections") this.actions.detection(this.hit.row);
    else this.actions.event(this.hit.row);
  }

  private key(event: KeyboardEvent): void {
    const acts: Record<string, () => void> = {
      "+": () => this.zoom(0.6),
      "=": () => this.zoom(0.6),
      "-": () => this.zoom(1.6),
      ArrowLeft: () => this.pan(-0.15),
      ArrowRight: () => this.pan(0.15),
      ArrowUp: () => this.scroll(-LANE),
      ArrowDown: () => this.scroll(LANE),
      "0": () => this.fit(),
      Escape: () => set("window", null),
    };
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : acts[event.key];
    if (!act) return;
    event.preventDefault();
    if (event.key.startsWith("Arrow")) this.follows = false;
    act();
  }
}
