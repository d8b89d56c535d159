// Makes the picture of a run one that is zoomed and moved along its line of time. What is drawn, and where, is in the picture itself.
(() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const STYLE = `:host { display: block; position: relative; } svg { max-width: 100%; height: auto; cursor: grab; user-select: none; }
    div { position: absolute; top: 8px; right: 8px; font: 12px sans-serif; color: #52606d; }
    button { font: inherit; min-width: 26px; cursor: pointer; border: 1px solid #cbd2d9; border-radius: 4px; background: #fff; color: #1f2933; }`;

  const button = (words, tip, act) => {
    const made = document.createElement("button");
    [made.textContent, made.title, made.onclick] = [words, tip, act];
    return made;
  };

  const told = (time, first) => (first < 365 * 86400000 ? String(Math.round(time)) : new Date(time).toISOString().replace("T", " "));

  // How an element is set where its time now is; null if it does not move.
  const mover = (element) => {
    const number = (name) => parseFloat(element.getAttribute(name));
    const set = (name, value) => element.setAttribute(name, value);
    switch (element.tagName) {
      case "rect": { const [x, wide] = [number("x"), number("width")]; return (at) => { set("x", at(x)); set("width", at(x + wide) - at(x)); }; }
      case "line": { const [a, b] = [number("x1"), number("x2")]; return (at) => { set("x1", at(a)); set("x2", at(b)); }; }
      case "circle": { const x = number("cx"); return (at) => set("cx", at(x)); }
      case "text": { const x = number("x"); return (at) => set("x", at(x)); }
      case "path": { const x = parseFloat(element.getAttribute("d").slice(1)); return (at) => set("transform", `translate(${at(x) - x} 0)`); }
      case "g": {
        const place = /^translate\(([-\d.]+) ([-\d.]+)\)/.exec(element.getAttribute("transform") || "");
        return place && ((at) => set("transform", `translate(${at(+place[1])} ${place[2]})`));
      }
    }
    return null;
  };

  // Nothing is seen beside the lanes, where their names are; words below them have more room.
  const clipped = (lanes, left, right, height) => {
    const clip = document.createElementNS(NAMESPACE, "clipPath");
    for (const [x, y, width] of [[left - 9, 0, right - left + 30], [left - 40, height - 34, right - left + 76]]) {
      const room = document.createElementNS(NAMESPACE, "rect");
      for (const [name, value] of Object.entries({ x, y, width, height })) room.setAttribute(name, value);
      clip.append(room);
    }
    clip.id = "lanes";
    lanes.before(clip);
    const frame = document.createElementNS(NAMESPACE, "g");
    frame.setAttribute("clip-path", "url(#lanes)");
    lanes.before(frame);
    frame.append(lanes);
  };

  const enliven = (host) => {
    host.dataset.ready = "1";
    const image = host.querySelector("img");
    const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (c) => c.charCodeAt(0));
    const room = document.createElement("div").attachShadow({ mode: "open" });  // what it looks like is no business of the page
    room.innerHTML = new TextDecoder().decode(bytes);
    const svg = room.querySelector("svg"), lanes = svg.querySelector("g.time");
    if (!lanes) return;
    const [left, right, first, last] = ["left", "right", "first", "last"].map((name) => parseFloat(lanes.dataset[name]));
    const tags = [...lanes.querySelectorAll("g[transform] *")];  // these go with what they are in
    const movers = [...lanes.querySelectorAll("*")].filter((e) => !tags.includes(e)).map(mover).filter(Boolean);
    clipped(lanes, left, right, svg.viewBox.baseVal.height);
    let factor = 1, shift = 0;
    const move = (nextFactor, nextShift) => {
      factor = Math.min(Math.max(nextFactor, 1), 5000);
      shift = Math.min(0, Math.max(nextShift, (right - left) * (1 - factor)));
      for (const set of movers) set((x) => left + (x - left) * factor + shift);
    };
    const zoom = (by, x) => { const next = Math.max(factor * by, 1); move(next, x - left - ((x - left - shift) / factor) * next); };
    const at = (event) => { const box = svg.getBoundingClientRect(); return ((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width; };
    const middle = (left + right) / 2, clock = document.createElement("span"), bar = document.createElement("div"), style = document.createElement("style");
    style.textContent = STYLE;
    bar.append(clock, " ", button("+", "closer (Ctrl and wheel)", () => zoom(2, middle)), button("−", "farther", () => zoom(0.5, middle)),
      button("↺", "all of it (double click)", () => move(1, 0)));
    room.append(style, bar);
    svg.ondblclick = () => move(1, 0);
    svg.onwheel = (event) => { if (event.ctrlKey || event.metaKey) { event.preventDefault(); zoom(event.deltaY < 0 ? 1.25 : 0.8, at(event)); } };
    svg.onpointerdown = (event) => svg.setPointerCapture(event.pointerId);
    svg.onpointermove = (event) => {
      const share = (at(event) - left - shift) / factor / (right - left);
      clock.textContent = share >= 0 && share <= 1 ? told(first + share * (last - first), first) : "";
      if (event.buttons) move(factor, shift + (event.movementX * svg.viewBox.baseVal.width) / svg.getBoundingClientRect().width);
    };
    image.replaceWith(room.host);
  };

  const begin = (tries) => {
    const found = document.querySelectorAll('[data-timeline="$TIMELINE"]:not([data-ready])');
    found.forEach(enliven);
    if (!found.length && tries) setTimeout(begin, 100, tries - 1);
  };
  begin(20);
})();
