/** The folder: rules, which of them are loaded, and events. */

import { post, type FileEntry, type SessionTold } from "./api";
import { button, fill, h } from "./dom";
import { say, tried } from "./panels";
import { now, set, when } from "./state";

export interface Opening {
  rules(name: string): Promise<void>;
  events(session: SessionTold): void;
  loaded(): Promise<void>;
}

export class FileTree {
  readonly element: HTMLElement;
  private readonly list: HTMLElement;
  private readonly title: HTMLElement;

  constructor(private readonly opening: Opening) {
    this.list = h("ul", { class: "tree", attrs: { role: "tree", "aria-label": "Files" } });
    this.title = h("span", { class: "root" });
    const add = button("+", "New file of rules", tried(() => this.add()), { class: "small", id: "new-file" });
    this.element = h("nav", { class: "panel files", attrs: { "aria-label": "Files" } }, h("header", {}, this.title, add), this.list);
    when(["session", "file", "checked"], () => this.show());
  }

  private show(): void {
    const session = now("session");
    if (!session) return;
    this.title.textContent = session.root;
    this.title.title = session.root;
    const wrong = new Set((now("checked")?.diagnostics ?? []).filter((each) => each.severity === "error").map((each) => each.file));
    const folders = new Map<string, FileEntry[]>();
    for (const file of session.files) {
      const folder = file.name.includes("/") ? file.name.slice(0, file.name.lastIndexOf("/")) : "";
      folders.set(folder, [...(folders.get(folder) ?? []), file]);
    }
    fill(this.list);
    for (const folder of [...folders.keys()].sort()) {
      if (folder) this.list.append(h("li", { class: "folder", attrs: { role: "none" } }, folder));
      for (const file of folders.get(folder)!) this.list.append(this.line(file, wrong.has(file.name)));
    }
    const live = session.live;
    if (live) this.list.append(h("li", { class: "live-source", title: live.url }, `● live ${live.url}`));
  }

  private line(file: FileEntry, wrong: boolean): HTMLElement {
    const base = file.name.slice(file.name.lastIndexOf("/") + 1);
    const chosen = file.kind === "rules" ? file.name === now("file") : base === now("session")?.events.name;
    const open = (): void => (file.kind === "rules" ? this.openRules(file) : this.openEvents(file));
    const check = h("input", {
      title: file.loaded ? "These rules are run" : "These rules are not run",
      attrs: { type: "checkbox", checked: file.loaded, "aria-label": `run ${base}` },
      on: { change: () => this.load(file, !file.loaded) },
    });
    const words = `${base}${file.changed ? " •" : ""}`;
    const name = h("button", { class: "file", title: file.name, attrs: { type: "button" }, on: { click: open } }, words);
    const mark = file.kind === "rules" ? check : h("span", { class: "events-mark", title: "events" }, "≋");
    const attrs = { role: "treeitem", "aria-selected": String(chosen), "data-file": file.name };
    return h("li", { class: `${file.kind}${chosen ? " chosen" : ""}${wrong ? " wrong" : ""}`, attrs }, mark, name);
  }

  private openRules(file: FileEntry): void {
    tried(() => this.opening.rules(file.name))();
  }

  private openEvents(file: FileEntry): void {
    tried(async () => {
      say(`reading ${file.name} …`);
      const session = await post<SessionTold>("events", { name: file.name });
      this.opening.events(session);
      say(`${session.events.count.toLocaleString("en")} events`);
    })();
  }

  private load(file: FileEntry, loaded: boolean): void {
    tried(async () => {
      set("session", await post<SessionTold>("load", { name: file.name, loaded }));
      await this.opening.loaded();
    })();
  }

  private async add(): Promise<void> {
    const endings = now("session")?.endings.join("  ") ?? "";
    const name = window.prompt(`Name of the new file. Its ending tells the language:\n${endings}`, "rules.say");
    if (!name) return;
    set("session", await post<SessionTold>("new", { name }));
    await this.opening.rules(name);
  }
}
