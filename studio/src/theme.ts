/** Light and dark: as the system has it, or as was chosen. Colours are those of style.css, which are safe for the colour-blind. */

const KEPT = "coincide-theme";

export interface Colours {
  ink: string;
  faint: string;
  line: string;
  paper: string;
  band: string;
  event: string;
  found: string;
  lit: string;
  clock: string;
  brush: string;
}

let kept: Colours | null = null;

export function colours(): Colours {
  if (kept === null) {
    const style = getComputedStyle(document.documentElement);
    const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
    kept = {
      ink: of("ink"),
      faint: of("faint"),
      line: of("line"),
      paper: of("paper"),
      band: of("band"),
      event: of("event"),
      found: of("found"),
      lit: of("lit"),
      clock: of("clock"),
      brush: of("brush"),
    };
  }
  return kept;
}

export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

export function startTheme(changed: () => void): () => void {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = (): void => {
    const chosen = localStorage.getItem(KEPT) ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset["theme"] = chosen;
    kept = null;
    changed();
  };
  system.addEventListener("change", apply);
  apply();
  return () => {
    localStorage.setItem(KEPT, isDark() ? "light" : "dark");
    apply();
  };
}
