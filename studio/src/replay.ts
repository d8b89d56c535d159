/** The run once more, event by event: forwards, back, at any speed. */

import { get, type MomentTold } from "./api";
import { fill, h, icon, iconButton } from "./dom";
import { now, set, when } from "./state";

const SPEEDS: [label: string, eventsPerSecond: number][] = [
  ["1 event/s", 1],
  ["5 events/s", 5],
  ["25 events/s", 25],
  ["100 events/s", 100],
  ["1 000 events/s", 1000],
  ["10 000 events/s", 10_000],
];

export class Replay {
  readonly element: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly place: HTMLElement;
  private readonly playing: HTMLButtonElement;
  private readonly speed: HTMLSelectElement;
  private at = 0;
  private timer = 0;
  private asked = false;
  private again = false;

  constructor(private readonly moved: (moment: MomentTold) => void) {
    this.slider = h("input", {
      id: "moment",
      attrs: { type: "range", min: 0, max: 0, value: 0, "aria-label": "Moment of the run" },
      on: { input: () => this.go(Number(this.slider.value)) },
    });
    this.place = h("span", { class: "faint moment-place" });
    this.playing = iconButton("play", "Play (Space)", () => this.toggle(), "play");
    this.speed = h("select", { id: "speed", attrs: { "aria-label": "Speed" } });
    for (const [label, value] of SPEEDS) this.speed.append(h("option", { attrs: { value, selected: value === 25 } }, label));
    this.element = h(
      "div",
      { class: "replay", attrs: { role: "group", "aria-label": "Replay" } },
      iconButton("first", "To the start (Home)", () => this.go(0), "first"),
      iconButton("back", "One event back (,)", () => this.step(-1), "back"),
      this.playing,
      iconButton("step", "One event forward (.)", () => this.step(1), "step"),
      iconButton("next", "To the next detection (n)", () => void this.next(), "next-detection"),
      iconButton("last", "To the end (End)", () => this.go(this.last), "last"),
      this.slider,
      this.place,
      this.speed,
    );
    when(["run"], () => this.renew());
    this.renew();
  }

  private get last(): number {
    return now("run")?.last ?? 0;
  }

  private renew(): void {
    const run = now("run");
    this.slider.max = String(run?.number ? run.last : 0);
    for (const each of this.element.querySelectorAll<HTMLInputElement>("button, input")) each.disabled = !run?.ended;
    this.tell();
  }

  /** Where the replay is not, the whole run is shown. */
  leave(): void {
    this.pause();
    this.at = 0;
    this.slider.value = "0";
    set("moment", null);
    this.tell();
  }

  step(by: number): void {
    this.pause();
    this.go(this.at + by);
  }

  go(moment: number): void {
    this.at = Math.max(0, Math.min(this.last, Math.round(moment)));
    this.slider.value = String(this.at);
    this.tell();
    void this.ask();
  }

  /** One request at a time: of those that come meanwhile the last counts. */
  private async ask(): Promise<void> {
    if (this.asked) {
      this.again = true;
      return;
    }
    this.asked = true;
    do {
      this.again = false;
      try {
        const moment = await get<MomentTold>("moment", { at: this.at, rule: now("rule") ?? undefined, key: now("key") ?? undefined });
        set("moment", moment);
        this.moved(moment);
      } catch {
        this.pause();
      }
    } while (this.again);
    this.asked = false;
  }

  /** Where a live run stands. */
  async follow(): Promise<void> {
    if (!this.asked) await this.ask();
  }

  /** The state of another rule at the same moment. */
  refresh(): void {
    if (now("moment")) void this.ask();
  }

  toggle(): void {
    if (this.timer) {
      this.pause();
      return;
    }
    if (this.at >= this.last) this.at = 0;
    fill(this.playing, icon("pause"));
    let before = performance.now();
    let rest = 0;
    this.timer = window.setInterval(() => {
      const time = performance.now();
      rest += ((time - before) / 1000) * Number(this.speed.value);
      before = time;
      const by = Math.floor(rest);
      if (by < 1 || this.asked) return;
      rest -= by;
      this.go(this.at + by);
      if (this.at >= this.last) this.pause();
    }, 40);
  }

  private pause(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    fill(this.playing, icon("play"));
  }

  private async next(): Promise<void> {
    this.pause();
    const { moment } = await get<{ moment: number | null }>("next", { after: this.at });
    this.go(moment ?? this.last);
  }

  private tell(): void {
    const run = now("run");
    this.place.textContent = run?.number ? `${this.at.toLocaleString("en")} / ${run.total.toLocaleString("en")}` : "";
  }

  key(key: string): boolean {
    const acts: Record<string, () => void> = {
      " ": () => this.toggle(),
      ".": () => this.step(1),
      ",": () => this.step(-1),
      n: () => void this.next(),
      Home: () => this.go(0),
      End: () => this.go(this.last),
    };
    if (!acts[key] || !now("run")?.ended) return false;
    acts[key]();
    return true;
  }
}
