/** The page: its parts, and what happens when. */

import { get, post, type CauseTold, type Checked, type DetectionTold, type Diagnostic, type RunTold, type SessionTold } from "./api";
import { button, fill, h, later } from "./dom";
import { BlocksView } from "./blocks";
import { Editor } from "./editor";
import { alone, asPng, asSvg, ofTable } from "./exporting";
import { FileTree } from "./files";
import { attributes, CausesView, DetectionsView, ProblemsView, StatisticsView, UnderWayView } from "./inspector";
import { NearView } from "./near";
import { border, say, Tabs, tried } from "./panels";
import { GraphView, PictureView } from "./picture";
import { Replay } from "./replay";
import { now, set, when } from "./state";
import { startTheme } from "./theme";
import { told } from "./time";
import { Timeline } from "./timeline";

const AUTOMATIC = 100_000;

class Studio {
  private readonly showing = {
    detection: (number: number) => tried(() => this.choose(number))(),
    event: (row: number) => tried(() => this.showEvent(row))(),
    reveal: (time: number) => this.timeline.reveal(time),
    span: (from: number, to: number) => this.timeline.around(from, to),
    problem: (problem: Diagnostic) => tried(() => this.goTo(problem))(),
    rule: (name: string) => tried(() => this.showRule(name))(),
  };
  private readonly timeline = new Timeline(this.showing);
  private readonly editor = new Editor({ run: () => this.run(), save: () => tried(() => this.save())(), checked: (c) => this.checked(c) });
  private readonly blocks = new BlocksView(this.editor);
  private readonly files = new FileTree({
    rules: (name) => this.open(name),
    events: (session) => this.newEvents(session),
    loaded: () => this.editor.check(),
  });
  private readonly causes = new CausesView(this.showing);
  private readonly detections = new DetectionsView(this.showing);
  private readonly problems = new ProblemsView(this.showing);
  private readonly underWay = new UnderWayView(() => this.replay.refresh());
  private readonly near = new NearView((time) => this.timeline.reveal(time));
  private readonly statistics = new StatisticsView(this.showing);
  private readonly picture = new PictureView();
  private readonly graph = new GraphView((rule) => this.showing.rule(rule));
  private readonly plan = h("pre", { class: "scroll plan", id: "plan" });
  private readonly replay = new Replay(() => undefined);
  private readonly runButton = button("Run", "Run the rules (Ctrl+Enter)", () => this.run(), { class: "primary", id: "run" });
  private readonly stopButton = button("Stop", "End the live run; what has come can then be gone through", tried(() => this.stopLive()), { id: "stop" });
  private readonly backButton = button("Look back", "", tried(() => this.turn()), { id: "look-back" });
  private polling = false;
  private readonly status = h("footer", { class: "status", attrs: { role: "status" } });
  private readonly event = h("div", { class: "event-box" });
  private readonly views: Tabs;
  private readonly inspector: Tabs;
  private readonly texts: Tabs;
  private readonly runSoon = later(250, () => this.run());
  private following = 0;

  constructor() {
    this.texts = new Tabs(
      "Rules",
      [
        { name: "text", label: "Text", title: "The text of the rules", content: this.editor.element },
        { name: "blocks", label: "Blocks", title: "The rules of a .say file, drawn", content: this.blocks.element },
      ],
      (name) => name === "blocks" && tried(() => this.blocks.show())(),
    );
    this.views = new Tabs(
      "Pictures",
      [
        { name: "picture", label: "Rule", title: "The rule under the cursor", content: this.picture.element },
        { name: "graph", label: "Detectors", title: "All detectors: keys, tiers, stages", content: this.graph.element },
        { name: "plan", label: "Plan", title: "How they will be run", content: this.plan },
        { name: "statistics", label: "Statistics", title: "Counts of the run, a line a rule", content: this.statistics.element },
      ],
      (name) => this.shown(name),
    );
    const why = h("div", { class: "stack" }, this.event, this.causes.element);
    this.inspector = new Tabs(
      "Findings",
      [
        { name: "causes", label: "Causes", title: "Why a detection was made", content: why },
        { name: "detections", label: "Detections", title: "All of this run", content: this.detections.element },
        { name: "near", label: "Near misses", title: "Why nothing was detected", content: this.near.element },
        { name: "under-way", label: "Under way", title: "What is begun and not ended, where the replay stands", content: this.underWay.element },
        { name: "problems", label: "Problems", title: "Errors and warnings", content: this.problems.element },
      ],
      (name) => name === "detections" && tried(() => this.detections.show())(),
    );
    this.lay(document.querySelector("#studio")!);
    this.listen();
  }

  private lay(into: Element): void {
    this.stopButton.hidden = this.backButton.hidden = true;
    this.runButton.disabled = true; // until it is known what there is to run
    this.texts.tools.append(
      button("format", "Lay the text out (Shift+Alt+F)", tried(() => this.editor.layOut()), { class: "small", id: "format" }),
      button("save", "Save (Ctrl+S)", tried(() => this.save()), { class: "small", id: "save" }),
    );
    const upper = h(
      "div",
      { class: "upper" },
      this.files.element,
      border("--files", "x", 1, 120, () => 420),
      this.texts.element,
      border("--pictures", "x", -1, 220, () => innerWidth - 520),
      this.views.element,
    );
    const side = border("--inspector", "x", -1, 240, () => innerWidth - 420);
    const lower = h("div", { class: "lower" }, this.lineOfTime(), side, this.inspector.element);
    into.append(this.topBar(), upper, border("--lower", "y", -1, 140, () => innerHeight - 240), lower, this.status);
  }

  private topBar(): HTMLElement {
    const theme = startTheme(() => this.timeline.draw());
    return h(
      "header",
      { class: "top" },
      h("h1", {}, "coincide ", h("span", {}, "studio")),
      this.runButton,
      this.stopButton,
      this.backButton,
      this.replay.element,
      h("span", { class: "spring" }),
      button("Expect → case", "Write what is expected as a case for `coincide test`", tried(() => this.writeCase()), { id: "case" }),
      this.exports(),
      button("?", "Keys", () => this.help(), { class: "small", id: "help" }),
      button("◐", "Light or dark", theme, { class: "small", id: "theme" }),
    );
  }

  private exports(): HTMLElement {
    const made = h("select", { id: "export", title: "Export a view", attrs: { "aria-label": "Export" } }, h("option", {}, "Export …"));
    for (const view of ["Timeline", "Rule", "Detectors", "Statistics"]) {
      made.append(h("option", {}, `${view} as SVG`), h("option", {}, `${view} as PNG`));
    }
    made.addEventListener("change", () => {
      const [view, form] = made.value.split(" as ");
      made.selectedIndex = 0;
      if (view && form) tried(() => this.export(view.toLowerCase(), form))();
    });
    return made;
  }

  private lineOfTime(): HTMLElement {
    const filter = h("input", {
      id: "filter",
      title: "Only events whose attribute has a value, such as user=eve",
      attrs: { placeholder: "attribute=value", list: "attributes", "aria-label": "Filter by attribute", spellcheck: "false" },
      on: { change: () => this.timeline.filterBy(filter.value.trim()) },
    });
    const known = h("datalist", { id: "attributes" });
    when(["session"], () => fill(known, ...(now("session")?.events.attributes ?? []).map((name) => h("option", { attrs: { value: `${name}=` } }))));
    const tools = h(
      "div",
      { class: "tools" },
      known,
      filter,
      button("+", "Zoom in (+)", () => this.timeline.zoom(0.5), { class: "small", id: "zoom-in" }),
      button("−", "Zoom out (−)", () => this.timeline.zoom(2), { class: "small", id: "zoom-out" }),
      button("fit", "All of it (0)", () => this.timeline.fit(), { class: "small", id: "fit" }),
    );
    return h(
      "section",
      { class: "panel", attrs: { "aria-label": "Line of time" } },
      h("header", {}, h("span", { class: "root" }, "Line of time"), tools),
      h("div", { class: "panel-body" }, this.timeline.element),
    );
  }

  private listen(): void {
    when(["run", "session", "checked"], () => this.tell());
    when(["rule"], () => {
      set("key", null);
      this.replay.refresh();
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof Element && event.target.closest("input, select, textarea, .cm-editor");
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter") this.run();
      else if ((event.ctrlKey || event.metaKey) && event.key === "s") {
        event.preventDefault();
        tried(() => this.save())();
      } else if (!typing && !event.ctrlKey && !event.altKey && event.key === "?") this.help();
      else if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
      else if (!(event.target instanceof HTMLButtonElement && event.key === " ") && this.replay.key(event.key)) event.preventDefault();
    });
  }

  async start(): Promise<void> {
    const session = await get<SessionTold>("session");
    set("session", session);
    this.timeline.fit();
    if (session.first) await this.open(session.first);
    set("checked", await get<Checked>("check"));
    const run = await get<RunTold>("run");
    this.runButton.disabled = false;
    if (session.live) this.startLive(session.live.running);
    else if (run.number) await this.follow(run);
    else if (now("checked")?.valid && session.events.count && session.events.count <= AUTOMATIC) this.run();
  }

  // Files.

  private async open(name: string): Promise<void> {
    const { text } = await get<{ text: string }>("file", { name });
    this.editor.open(name, text);
    if (!name.endsWith(".say")) this.texts.show("text");
  }

  private async save(): Promise<void> {
    await this.editor.check(false);
    set("session", await post<SessionTold>("save", { name: this.editor.file }));
    say(`${this.editor.file} is saved`);
  }

  private checked(checked: Checked): void {
    const count = now("session")?.events.count ?? 0;
    this.refreshPlan();
    if (checked.valid && !now("session")?.live && count && count <= AUTOMATIC) this.runSoon();
  }

  private renewed(session: SessionTold): void {
    set("session", session);
    set("run", null);
    set("chosen", null);
    set("window", null);
    this.replay.leave();
    this.timeline.renew("events");
    this.timeline.renew("detections");
    this.timeline.fit();
  }

  private newEvents(session: SessionTold): void {
    this.renewed(session);
    if (now("checked")?.valid && session.events.count <= AUTOMATIC) this.run();
  }

  // Runs.

  private run(): void {
    tried(async () => {
      if (this.editor.file) await this.editor.check(false);
      if (!now("checked")?.valid) {
        this.inspector.show("problems");
        throw new Error(now("checked")?.diagnostics[0]?.message ?? "there are no rules yet");
      }
      const run = await post<RunTold>("run");
      if (now("session")?.live?.past) this.renewed(await get<SessionTold>("session"));
      if (now("session")?.live) this.startLive(true);
      else await this.follow(run);
    })();
  }

  // Live.

  private startLive(running: boolean): void {
    this.timeline.follows = true;
    if (running && !this.polling) void this.poll();
  }

  /** Again and again, for as long as events come. */
  private async poll(): Promise<void> {
    this.polling = true;
    try {
      for (;;) {
        const before = now("session");
        const [session, run] = [await get<SessionTold>("session"), await get<RunTold>("run")];
        if (!session.live || !this.polling) break;
        if (session.live.past !== now("session")?.live?.past) continue; // asked before, answered behind a turn
        if (session.live.past) set("session", session);
        else {
          this.taken(before, session, run);
          await this.replay.follow();
        }
        if (!session.live.running) {
          if (session.live.failure) say(session.live.failure, "bad");
          break;
        }
        await new Promise((done) => window.setTimeout(done, 400));
      }
    } finally {
      this.polling = false;
    }
  }

  private taken(before: SessionTold | null, session: SessionTold, run: RunTold): void {
    const end = before?.events.span?.[1] ?? 0;
    const more = session.events.count !== before?.events.count || run.detections !== now("run")?.detections;
    set("session", session);
    set("run", run);
    if (!before?.events.span && session.events.span) this.timeline.fit();
    const renamed = before?.events.lanes.some(([name], n) => session.events.lanes[n]?.[0] !== name);
    if (renamed) this.timeline.renew("events");
    if (more) {
      this.timeline.extend(end);
      if (this.inspector.current === "detections") tried(() => this.detections.show())();
    }
  }

  /** Back to what has come so far, while more comes; or to the live run again. */
  private async turn(): Promise<void> {
    const past = now("session")?.live?.past;
    this.renewed(await post<SessionTold>(past ? "resume" : "back"));
    this.timeline.follows = !!past;
    if (!past) await this.follow(await get<RunTold>("run"));
  }

  private async stopLive(): Promise<void> {
    this.polling = false;
    this.newEvents(await post<SessionTold>("stop"));
    this.timeline.follows = false;
  }

  /** Until it has ended. */
  private async follow(run: RunTold): Promise<void> {
    const own = ++this.following;
    this.replay.leave();
    set("chosen", null);
    this.timeline.renew("detections");
    let told_ = run;
    while (own === this.following) {
      set("run", told_);
      this.runButton.disabled = !told_.ended;
      if (told_.ended) break;
      await new Promise((done) => window.setTimeout(done, 120));
      told_ = await get<RunTold>("run");
    }
    if (own !== this.following) return;
    this.timeline.renew("detections");
    if (this.inspector.current === "detections" || !told_.failure.length) await this.detections.show();
    if (told_.failure.length) this.inspector.show("problems");
    this.shown(this.views.current);
  }

  private async choose(number: number): Promise<void> {
    const { detection, causes } = await get<{ detection: DetectionTold; causes: CauseTold }>("causes", { number });
    fill(this.event);
    set("chosen", { detection, causes });
    this.inspector.show("causes");
    if (now("checked")?.rules.some((rule) => rule.name === detection.rule)) set("rule", detection.rule);
  }

  private async showEvent(row: number): Promise<void> {
    const event = await get<{ hi: number; record: Record<string, unknown> }>("event", { row });
    const last = now("session")?.events.span?.[1] ?? 0;
    fill(
      this.event,
      h("div", { class: "chosen-head" }, h("b", { class: "event" }, `● ${String(event.record["type"])}`), h("span", { class: "faint" }, told(event.hi, last)), now("run")?.ended ? button("replay to here", "Let the replay stand right behind this event", () => this.replay.go(row + 1), { class: "link" }) : null),
      attributes(event.record),
    );
    set("event", row);
    this.inspector.show("causes");
  }

  private async goTo(problem: Diagnostic): Promise<void> {
    if (!problem.file) return;
    if (problem.file !== this.editor.file) await this.open(problem.file);
    this.editor.goTo(problem.start ?? 0);
  }

  private async showRule(name: string): Promise<void> {
    const rule = now("checked")?.rules.find((each) => each.name === name);
    if (!rule) return;
    if (rule.place) {
      if (rule.place[0] !== this.editor.file) await this.open(rule.place[0]);
      this.editor.goTo(rule.place[1]);
    }
    set("rule", name);
    if (this.views.current !== "graph") this.views.show("picture");
  }

  // Views.

  private shown(name: string): void {
    if (name === "graph") void this.graph.show();
    if (name === "statistics") tried(() => this.statistics.show())();
    if (name === "plan") this.refreshPlan();
  }

  private refreshPlan(): void {
    if (this.views.current !== "plan") return;
    get<{ plan: string }>("plan").then(
      ({ plan }) => (this.plan.textContent = plan),
      (error: Error) => (this.plan.textContent = error.message),
    );
  }

  private async export(view: string, form: string): Promise<void> {
    const svg = await this.viewAsSvg(view);
    if (!svg) throw new Error(`there is nothing to export: show '${view}' first`);
    if (form === "SVG") asSvg(`coincide-${view}`, svg);
    else await asPng(`coincide-${view}`, svg);
  }

  private async viewAsSvg(view: string): Promise<SVGElement | null> {
    if (view === "timeline") return this.timeline.svg();
    const tab = view === "rule" ? "picture" : view === "detectors" ? "graph" : "statistics";
    this.views.show(tab);
    if (tab === "graph") await this.graph.show();
    if (tab === "statistics") {
      await this.statistics.show();
      const table = this.statistics.element.querySelector("table");
      return table && ofTable(table);
    }
    const shown = tab === "picture" ? this.picture.svg : this.graph.svg;
    return shown && alone(shown);
  }

  private async writeCase(): Promise<void> {
    const name = window.prompt("Folder of the case, below the folder that is open:", "case");
    if (!name) return;
    const span = now("window") ?? undefined;
    const made = await post<{ folder: string; events: number; expected: number; passed: boolean; problems: string[] }>("case", { name, span });
    const result = made.passed ? "it passes" : `it fails: ${made.problems[0] ?? ""}`;
    say(`${made.folder}: ${made.events.toLocaleString("en")} events, ${made.expected.toLocaleString("en")} expected; ${result}`, made.passed ? "good" : "bad");
    set("session", await get<SessionTold>("session"));
  }

  private help(): void {
    const keys: [string, string][] = [
      ["Ctrl+Enter", "run the rules"],
      ["Ctrl+S", "save the file"],
      ["Ctrl+Space", "complete a word"],
      ["F8", "next problem in the text"],
      ["+  −  0", "zoom in, out, all (on the line of time)"],
      ["←  →", "move in time"],
      ["Shift+drag", "mark a stretch of time"],
      [".  ,", "one event forward, back"],
      ["n", "to the next detection"],
      ["Space", "play, pause"],
      ["Home  End", "to the start, to the end"],
    ];
    const close = button("close", "Close (Esc)", () => dialog.close(), { class: "small" });
    const table = h("table", {}, ...keys.map(([key, what]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, what))));
    const dialog = h("dialog", { class: "help" }, h("h2", {}, "Keys"), table, close);
    document.body.append(dialog);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
  }

  private tell(): void {
    const [session, run, checked] = [now("session"), now("run"), now("checked")];
    const live = session?.live;
    const problems = this.problems.all;
    const errors = problems.filter((each) => each.severity === "error").length;
    const count = problems.length;
    this.stopButton.hidden = this.backButton.hidden = !live?.running;
    this.backButton.textContent = live?.past ? "Back to live" : "Look back";
    this.backButton.title = live?.past ? "Show the run as it goes on" : "Go through what has come so far, while more comes";
    this.runButton.textContent = live ? (live.running ? "Use rules" : "Go live") : "Run";
    this.inspector.label("problems", count ? `Problems ${count}` : "Problems");
    this.inspector.label("detections", run?.number ? `Detections ${run.detections.toLocaleString("en")}` : "Detections");
    const state = errors ? `✗ ${errors} error${errors > 1 ? "s" : ""}` : checked?.valid ? "✓ rules are valid" : "no rules";
    const progress = live ? (live.running ? `live: ${live.arrived.toLocaleString("en")} events have come${live.past ? "; this is what had come before" : ""}` : "live: not running") : run?.number ? (run.ended ? `run in ${run.seconds.toFixed(2)} s` : `running: ${run.consumed.toLocaleString("en")} of ${run.total.toLocaleString("en")}`) : "not run yet";
    const rejected = session?.events.rejected ? ` (${session.events.rejected.toLocaleString("en")} records left out)` : "";
    fill(
      this.status,
      h("span", { class: errors ? "bad" : checked?.valid ? "good" : "faint" }, state),
      h("span", {}, session?.events.name ? `${session.events.name}: ${session.events.count.toLocaleString("en")} events${rejected}` : "no events"),
      h("span", {}, run?.number ? `${run.detections.toLocaleString("en")} detections` : ""),
      h("span", { class: "faint" }, progress),
      h("span", { class: "spring" }),
      h("span", { class: "faint" }, `coincide ${session?.version ?? ""}`),
    );
  }
}

const studio = new Studio();
studio.start().catch((error: unknown) => say(error instanceof Error ? error.message : String(error), "bad"));
