// "What do you need?": rows of the table can be ticked; languages that do not have all that is ticked step back.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".needs table")) {
    const rows = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells].slice(1);
    const answer = document.createElement("p");
    answer.setAttribute("role", "status");
    const choose = () => {
      const ticked = rows.filter((row) => row.cells[0].querySelector("input").checked);
      const has = (row, column) => row.cells[column + 1].textContent.trim();
      const fit = heads.filter((head, column) => ticked.every((row) => has(row, column))).map((head) => head.textContent);
      for (const row of [table.tHead.rows[0], ...rows])
        [...row.cells].slice(1).forEach((cell, column) => cell.classList.toggle("lacks", !fit.includes(heads[column].textContent)));
      rows.forEach((row) => row.classList.toggle("ticked", ticked.includes(row)));
      answer.textContent = !ticked.length ? "Tick what you need." : fit.length ? `Take ${fit.join(", ")}.`
        : "No language has all of it: write two rules. What one finds is an event for the other.";
    };
    for (const row of rows) {
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox";
      box.onchange = choose;
      label.append(box, " ", ...row.cells[0].childNodes);
      row.cells[0].append(label);
    }
    table.closest(".needs").prepend(answer);
    choose();
  }
});
