/** The text of a rule file: errors in place, hints, completion and what is known of a word, all from the server. */

import { autocompletion, closeBrackets, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic as Shown } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, StateEffect, StateField, Compartment, type Extension, type Text } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  placeholder,
  type DecorationSet,
  type Tooltip,
} from "@codemirror/view";
import { post, type Checked } from "./api";
import { h, later } from "./dom";
import { now, set, when } from "./state";

interface Token {
  start: number;
  end: number;
  kind: string;
}

interface Completion {
  label: string;
  kind: string;
  detail: string;
  insert: string;
  start: number;
  end: number;
}

export interface Doing {
  run(): void;
  save(): void;
  checked(checked: Checked): void;
}

const setTokens = StateEffect.define<DecorationSet>();
const tokenField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) if (effect.is(setTokens)) return effect.value;
    return marks.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Places count characters on the server and units of UTF-16 here: they differ behind a character such as an emoji. */
export function units(text: string): (place: number) => number {
  if (!/[\ud800-\udbff]/.test(text)) return (place) => place;
  const starts: number[] = [];
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xffff ? 2 : 1) starts.push(at);
  return (place) => starts[place] ?? text.length;
}

export function characters(text: string, unit: number): number {
  return [...text.slice(0, unit)].length;
}

/** The little Markdown that explanations have: paragraphs, `code`, **bold**, and blocks of code. */
function explained(text: string): HTMLElement[] {
  return text.split(/```\w*\n([\s\S]*?)```/).flatMap((part, n): HTMLElement[] => {
    if (n % 2) return [h("pre", {}, part.trimEnd())];
    return part.split(/\n\n+/).filter((each) => each.trim()).map((each) => h("p", {}, ...inline(each.trim())));
  });
}

function inline(text: string): (HTMLElement | string)[] {
  return text.split(/(`[^`]*`|\*\*[^*]*\*\*)/).map((part) => {
    if (part.startsWith("`") && part.length > 1) return h("code", {}, part.slice(1, -1));
    return part.startsWith("**") && part.length > 4 ? h("b", {}, part.slice(2, -2)) : part;
  });
}

export class Editor {
  readonly element: HTMLElement;
  private readonly view: EditorView;
  private readonly states = new Map<string, EditorState>();
  private readonly locked = new Compartment();
  private name = "";
  private version = 0;
  private readonly checkSoon = later(220, () => void this.check().catch(() => undefined));

  constructor(private readonly doing: Doing) {
    this.element = h("div", { class: "editor" });
    this.view = new EditorView({ state: this.fresh(""), parent: this.element });
    when(["checked"], () => {
      this.showProblems();
      this.underCursor();
    });
  }

  private fresh(text: string): EditorState {
    const nonce = document.querySelector<HTMLMetaElement>("meta[name=nonce]")?.content ?? "";
    const own: Extension = [
      EditorView.cspNonce.of(nonce),
      lineNumbers(),
      highlightActiveLineGutter(),
      highlightActiveLine(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightSelectionMatches(),
      lintGutter(),
      tokenField,
      autocompletion({ override: [(context) => this.complete(context)], icons: false }),
      hoverTooltip((view, at) => this.hover(view.state.doc, at)),
      this.locked.of(EditorState.readOnly.of(!this.name)),
      placeholder(this.name ? "Write a rule (Ctrl+Space shows what there is)" : "No file is open: + on the left makes one"),
      keymap.of([
        { key: "Mod-Enter", run: () => (this.doing.run(), true) },
        { key: "Mod-s", preventDefault: true, run: () => (this.doing.save(), true) },
        { key: "Shift-Alt-f", run: () => (void this.layOut(), true) },
        ...completionKeymap,
        ...lintKeymap,
        ...searchKeymap,
        ...historyKeymap,
        indentWithTab,
        ...defaultKeymap,
      ]),
      EditorView.contentAttributes.of({ "aria-label": "Rules" }),
      EditorView.updateListener.of((change) => {
        if (change.docChanged) this.changed();
        if (change.selectionSet || change.docChanged) this.underCursor();
      }),
    ];
    return EditorState.create({ doc: text, extensions: own });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  get file(): string {
    return this.name;
  }

  /** Another file; one that was open before has its history, and its cursor where it was. */
  open(name: string, text: string): void {
    if (this.name) this.states.set(this.name, this.view.state);
    this.name = name;
    const before = this.states.get(name);
    this.view.setState(before && before.doc.toString() === text ? before : this.fresh(text));
    this.version++;
    set("file", name);
    void this.colour();
    this.showProblems();
    this.underCursor();
  }

  /** The text as somebody else has it now: changed as little as that takes, so that cursor and history stay. */
  replace(text: string): void {
    const before = this.text;
    if (before === text) return;
    let from = 0;
    while (from < before.length && before[from] === text[from]) from++;
    let end = 0;
    while (end < before.length - from && end < text.length - from && before[before.length - 1 - end] === text[text.length - 1 - end]) end++;
    this.view.dispatch({ changes: { from, to: before.length - end, insert: text.slice(from, text.length - end) } });
  }

  focus(): void {
    this.view.focus();
  }

  goTo(place: number): void {
    const at = Math.min(units(this.text)(place), this.view.state.doc.length);
    this.view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
    this.view.focus();
  }

  private changed(): void {
    this.version++;
    this.checkSoon();
  }

  /** `told`: whoever waits for changes is told of it. */
  async check(told = true): Promise<void> {
    const [name, version] = [this.name, this.version];
    const checked = await post<Checked>("change", { name, text: this.text });
    if (version !== this.version) return;
    set("checked", checked);
    if (told) this.doing.checked(checked);
    void this.colour();
  }

  private showProblems(): void {
    const at = units(this.text);
    const length = this.view.state.doc.length;
    const own = (now("checked")?.diagnostics ?? []).filter((each) => each.file === this.name);
    const shown = own.map((each): Shown => {
      const from = Math.min(at(each.start ?? 0), length);
      const to = Math.min(Math.max(at(each.end ?? 0), from), length);
      const message = each.hint ? `${each.message}\n${each.hint}` : each.message;
      return { from, to, severity: each.severity === "error" ? "error" : "warning", message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, shown));
  }

  /** The rule in whose text the cursor stands: the last that begins before it. */
  private underCursor(): void {
    const place = characters(this.text, this.view.state.selection.main.head);
    const own = (now("checked")?.rules ?? []).filter((rule) => rule.place?.[0] === this.name);
    const line = characters(this.text, this.view.state.doc.lineAt(this.view.state.selection.main.head).to);
    const found = own.filter((rule) => rule.place![1] <= Math.max(place, line)).pop() ?? own[0];
    if (found) set("rule", found.name);
  }

  private async colour(): Promise<void> {
    const [version, text, name] = [this.version, this.text, this.name];
    const { tokens } = await post<{ tokens: Token[] }>("tokens", { name, text }).catch(() => ({ tokens: [] as Token[] }));
    if (version !== this.version) return;
    const at = units(text);
    const marks = tokens
      .filter((token) => token.end > token.start)
      .map((token) => Decoration.mark({ class: `tok-${token.kind}` }).range(at(token.start), Math.min(at(token.end), text.length)));
    this.view.dispatch({ effects: setTokens.of(Decoration.set(marks, true)) });
  }

  private async complete(context: CompletionContext): Promise<CompletionResult | null> {
    const before = context.matchBefore(/[\w.-]*/);
    if (!context.explicit && (!before || before.from === before.to)) return null;
    const text = context.state.doc.toString();
    const body = { name: this.name, text, offset: characters(text, context.pos) };
    const { completions } = await post<{ completions: Completion[] }>("complete", body).catch(() => ({ completions: [] as Completion[] }));
    if (!completions.length) return null;
    const at = units(text);
    return {
      from: Math.min(...completions.map((each) => at(each.start))),
      options: completions.map((each) => ({ label: each.label, type: each.kind, detail: each.detail, apply: each.insert })),
      validFor: /^[\w.-]*$/,
    };
  }

  private async hover(doc: Text, place: number): Promise<Tooltip | null> {
    const text = doc.toString();
    const body = { name: this.name, text, offset: characters(text, place) };
    const told = await post<{ text: string | null; start: number; end: number }>("hover", body).catch(() => null);
    if (!told?.text) return null;
    const at = units(text);
    const words = told.text;
    return {
      pos: at(told.start),
      end: at(told.end),
      above: true,
      create: () => ({ dom: h("div", { class: "hover" }, ...explained(words)) }),
    };
  }

  async layOut(): Promise<void> {
    const told = await post<{ text: string | null }>("format", { name: this.name, text: this.text });
    if (told.text !== null) this.replace(told.text);
  }
}
