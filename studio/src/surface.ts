/** What is drawn on: a canvas for the screen, or elements of SVG for a file. The same code draws on both. */

import { s } from "./dom";

export interface Surface {
  rect(x: number, y: number, width: number, height: number, colour: string, round?: number): void;
  line(x1: number, y1: number, x2: number, y2: number, colour: string, width?: number, dash?: number[]): void;
  curve(x1: number, y1: number, x2: number, y2: number, colour: string, width?: number): void;
  circle(x: number, y: number, radius: number, fill: string, stroke?: string): void;
  diamond(x: number, y: number, radius: number, fill: string, stroke?: string): void;
  text(x: number, y: number, words: string, colour: string, options?: { bold?: boolean; end?: boolean; most?: number }): void;
  clipped(x: number, y: number, width: number, height: number, draw: () => void): void;
}

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const SIZE = 11.5;

export class CanvasSurface implements Surface {
  constructor(private readonly on: CanvasRenderingContext2D) {}

  rect(x: number, y: number, width: number, height: number, colour: string, round = 0): void {
    this.on.fillStyle = colour;
    if (!round) {
      this.on.fillRect(x, y, width, height);
      return;
    }
    this.on.beginPath();
    this.on.roundRect(x, y, width, height, round);
    this.on.fill();
  }

  line(x1: number, y1: number, x2: number, y2: number, colour: string, width = 1, dash: number[] = []): void {
    this.on.strokeStyle = colour;
    this.on.lineWidth = width;
    this.on.setLineDash(dash);
    this.on.beginPath();
    this.on.moveTo(x1, y1);
    this.on.lineTo(x2, y2);
    this.on.stroke();
  }

  curve(x1: number, y1: number, x2: number, y2: number, colour: string, width = 1): void {
    this.on.strokeStyle = colour;
    this.on.lineWidth = width;
    this.on.setLineDash([]);
    this.on.beginPath();
    this.on.moveTo(x1, y1);
    this.on.bezierCurveTo(x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2);
    this.on.stroke();
  }

  circle(x: number, y: number, radius: number, fill: string, stroke?: string): void {
    this.on.beginPath();
    this.on.arc(x, y, radius, 0, Math.PI * 2);
    this.finish(fill, stroke);
  }

  diamond(x: number, y: number, radius: number, fill: string, stroke?: string): void {
    this.on.beginPath();
    this.on.moveTo(x, y - radius);
    this.on.lineTo(x + radius, y);
    this.on.lineTo(x, y + radius);
    this.on.lineTo(x - radius, y);
    this.on.closePath();
    this.finish(fill, stroke);
  }

  private finish(fill: string, stroke?: string): void {
    this.on.fillStyle = fill;
    this.on.fill();
    if (stroke) {
      this.on.setLineDash([]);
      this.on.lineWidth = 1.5;
      this.on.strokeStyle = stroke;
      this.on.stroke();
    }
  }

  text(x: number, y: number, words: string, colour: string, options: { bold?: boolean; end?: boolean; most?: number } = {}): void {
    this.on.font = `${options.bold ? "600 " : ""}${SIZE}px ${FONT}`;
    this.on.textAlign = options.end ? "right" : "left";
    this.on.textBaseline = "middle";
    this.on.fillStyle = colour;
    let shown = words;
    if (options.most !== undefined) {
      while (shown.length > 1 && this.on.measureText(shown).width > options.most) shown = `${shown.slice(0, -2)}…`;
    }
    this.on.fillText(shown, x, y);
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    this.on.save();
    this.on.beginPath();
    this.on.rect(x, y, width, height);
    this.on.clip();
    draw();
    this.on.restore();
  }
}

export class SvgSurface implements Surface {
  readonly root: SVGElement;
  private at: SVGElement;
  private clips = 0;

  constructor(width: number, height: number, title: string) {
    this.root = s("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
    this.root.append(s("title", {}, title));
    this.at = this.root;
  }

  rect(x: number, y: number, width: number, height: number, fill: string, round = 0): void {
    this.at.append(s("rect", { x: n(x), y: n(y), width: n(width), height: n(height), fill, ...(round ? { rx: round } : {}) }));
  }

  line(x1: number, y1: number, x2: number, y2: number, stroke: string, width = 1, dash: number[] = []): void {
    const more: Record<string, string> = dash.length ? { "stroke-dasharray": dash.join(" ") } : {};
    this.at.append(s("path", { d: `M${n(x1)} ${n(y1)}L${n(x2)} ${n(y2)}`, stroke, "stroke-width": width, fill: "none", ...more }));
  }

  curve(x1: number, y1: number, x2: number, y2: number, stroke: string, width = 1): void {
    const m = n((y1 + y2) / 2);
    const d = `M${n(x1)} ${n(y1)}C${n(x1)} ${m} ${n(x2)} ${m} ${n(x2)} ${n(y2)}`;
    this.at.append(s("path", { d, stroke, "stroke-width": width, fill: "none" }));
  }

  circle(x: number, y: number, r: number, fill: string, stroke?: string): void {
    this.at.append(s("circle", { cx: n(x), cy: n(y), r, fill, ...(stroke ? { stroke, "stroke-width": 1.5 } : {}) }));
  }

  diamond(x: number, y: number, r: number, fill: string, stroke?: string): void {
    const d = `M${n(x)} ${n(y - r)}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`;
    this.at.append(s("path", { d, fill, ...(stroke ? { stroke, "stroke-width": 1.5 } : {}) }));
  }

  text(x: number, y: number, words: string, fill: string, options: { bold?: boolean; end?: boolean; most?: number } = {}): void {
    const letters = options.most === undefined ? words.length : Math.max(1, Math.floor(options.most / (SIZE * 0.55)));
    const shown = words.length > letters ? `${words.slice(0, letters - 1)}…` : words;
    const more: Record<string, string> = options.end ? { "text-anchor": "end" } : {};
    const weight: Record<string, string> = options.bold ? { "font-weight": "600" } : {};
    const given = { x: n(x), y: n(y + SIZE * 0.35), fill, "font-family": FONT, "font-size": SIZE, ...more, ...weight };
    this.at.append(s("text", given, shown));
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    const id = `clip${this.clips++}`;
    this.root.append(s("clipPath", { id }, s("rect", { x: n(x), y: n(y), width: n(width), height: n(height) })));
    const before = this.at;
    this.at = s("g", { "clip-path": `url(#${id})` });
    before.append(this.at);
    draw();
    this.at = before;
  }
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}
