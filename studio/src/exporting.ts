/** Views as files: SVG as they stand, PNG of the same. */

import { h, save } from "./dom";
import { FONT } from "./surface";

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "font-family", "opacity", "text-anchor"];

/** An element of the page as a picture of its own: the styles that the page gives it go with it. */
export function alone(svg: SVGElement): SVGElement {
  const copy = svg.cloneNode(true) as SVGElement;
  const [from, to] = [[svg, ...svg.querySelectorAll<SVGElement>("*")], [copy, ...copy.querySelectorAll<SVGElement>("*")]];
  for (const [n, each] of from.entries()) {
    const style = getComputedStyle(each);
    const target = to[n]!;
    for (const name of KEPT) {
      const value = style.getPropertyValue(name);
      if (value) target.setAttribute(name, value);
    }
    target.removeAttribute("class");
    target.removeAttribute("style");
  }
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: paper })) back.setAttribute(name, value);
  copy.prepend(back);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return copy;
}

export function asSvg(name: string, svg: SVGElement): void {
  save(`${name}.svg`, new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));
}

export async function asPng(name: string, svg: SVGElement): Promise<void> {
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));
  const image = new Image();
  await new Promise<void>((done, failed) => {
    image.onload = () => done();
    image.onerror = () => failed(new Error("the picture cannot be drawn"));
    image.src = url;
  });
  const canvas = h("canvas", { attrs: { width: width * 2, height: height * 2 } });
  canvas.getContext("2d")!.drawImage(image, 0, 0, width * 2, height * 2);
  URL.revokeObjectURL(url);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (blob) save(`${name}.png`, blob);
}

/** A table as a picture. */
export function ofTable(table: HTMLTableElement): SVGElement {
  const style = getComputedStyle(document.documentElement);
  const [ink, paper] = [style.getPropertyValue("--ink").trim(), style.getPropertyValue("--paper").trim()];
  const box = table.getBoundingClientRect();
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const give = (element: Element, attrs: Record<string, string | number>): Element => {
    for (const [name, value] of Object.entries(attrs)) element.setAttribute(name, String(value));
    return element;
  };
  give(svg, { xmlns: "http://www.w3.org/2000/svg", width: Math.ceil(box.width), height: Math.ceil(box.height) });
  svg.append(give(document.createElementNS(svg.namespaceURI, "rect"), { width: "100%", height: "100%", fill: paper }));
  for (const cell of table.querySelectorAll("th, td")) {
    const own = cell.getBoundingClientRect();
    const right = cell.classList.contains("number");
    const x = right ? own.right - box.left - 8 : own.left - box.left + 8;
    const text = document.createElementNS(svg.namespaceURI, "text");
    give(text, { x, y: own.top - box.top + own.height / 2 + 4, fill: ink, "font-family": FONT, "font-size": 12 });
    if (right) text.setAttribute("text-anchor", "end");
    if (cell.tagName === "TH") text.setAttribute("font-weight", "600");
    text.textContent = cell.textContent;
    svg.append(text);
  }
  return svg;
}
