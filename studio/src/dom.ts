/** Elements without a framework. Text is always text: nothing here reads HTML. */

type Child = Node | string | number | null | undefined | false;
type Handlers = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
interface Options {
  class?: string;
  title?: string;
  id?: string;
  on?: Handlers;
  attrs?: Record<string, string | number | boolean | undefined>;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  options: Options = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (options.class) made.className = options.class;
  if (options.title) made.title = options.title;
  if (options.id) made.id = options.id;
  for (const [name, value] of Object.entries(options.attrs ?? {})) {
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, handler] of Object.entries(options.on ?? {})) {
    made.addEventListener(name, handler as EventListener);
  }
  append(made, children);
  return made;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/** Other content in the place of what was there. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

const SVG = "http://www.w3.org/2000/svg";

export function s(tag: string, attrs: Record<string, string | number> = {}, ...children: (Node | string)[]): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attrs)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

export function button(
  label: string,
  title: string,
  act: () => void,
  options: { class?: string; id?: string; pressed?: boolean } = {},
): HTMLButtonElement {
  return h(
    "button",
    {
      title,
      class: options.class,
      id: options.id,
      attrs: { type: "button", "aria-pressed": options.pressed === undefined ? undefined : String(options.pressed) },
      on: { click: act },
    },
    label,
  );
}

const ICONS: Record<string, string> = {
  first: "M2 2v10M12 2L5 7l7 5z",
  back: "M10 2L4 7l6 5z",
  play: "M4 2l8 5l-8 5z",
  pause: "M4 2v10M9 2v10",
  step: "M3 2l6 5l-6 5zM11 2v10",
  next: "M2 3l5 4l-5 4zM10.5 4l3 3l-3 3l-3 -3z",
  last: "M2 2l7 5l-7 5zM12 2v10",
};

/** A small picture on a button, drawn in the colour of its text. */
export function icon(name: string): SVGElement {
  return s("svg", { viewBox: "0 0 14 14", width: 13, height: 13, class: "icon", "aria-hidden": "true" }, s("path", { d: ICONS[name] ?? "" }));
}

export function iconButton(name: string, title: string, act: () => void, id: string): HTMLButtonElement {
  const made = button("", title, act, { id });
  made.setAttribute("aria-label", title);
  made.append(icon(name));
  return made;
}

/** What is called too often is done once, a little later. */
export function later<A extends unknown[]>(wait: number, act: (...args: A) => void): (...args: A) => void {
  let timer: number | undefined;
  return (...args: A) => {
    if (timer !== undefined) window.clearTimeout(timer);
    timer = window.setTimeout(() => act(...args), wait);
  };
}

export function save(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = h("a", { attrs: { href: url, download: name } });
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
