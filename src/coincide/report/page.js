"use strict";
(function () {
  const search = document.getElementById("search");
  const boxes = Array.from(document.querySelectorAll(".controls input[type=checkbox]"));
  const rules = Array.from(document.querySelectorAll("section.rule"));
  const texts = rules.map((rule) => rule.textContent.toLowerCase());
  const left = document.getElementById("left");

  function narrow() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const levels = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    rules.forEach((rule, n) => {
      const fits = levels.has(rule.dataset.level) && words.every((word) => texts[n].includes(word));
      rule.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    left.textContent = shown === rules.length ? "" : shown + " of " + rules.length + " rules";
  }

  search.addEventListener("input", narrow);
  boxes.forEach((box) => box.addEventListener("change", narrow));
  document.getElementById("unfold").addEventListener("click", (event) => {
    const open = event.target.dataset.open !== "yes";
    document.querySelectorAll("section.rule details").forEach((part) => { part.open = open; });
    event.target.dataset.open = open ? "yes" : "no";
    event.target.textContent = open ? "Fold all" : "Unfold all";
  });
  document.querySelector(".controls").hidden = false;
})();
