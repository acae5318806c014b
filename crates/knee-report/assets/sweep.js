"use strict";
// Chooses what the page of a sweep shows: all of it was drawn by sweep.rs.
(() => {
  const at = (id) => document.getElementById(id);
  const form = at("controls"), charts = at("charts"), detail = at("detail");
  if (!form) return;
  const points = JSON.parse(at("points").textContent), isMap = charts.dataset.kind === "map";
  const held = new Map([...document.querySelectorAll("script.shown")].map((one) => [`${one.dataset.kind} ${one.dataset.name}`, one]));
  const value = (name) => form.elements[name]?.value ?? "";
  let map = isMap ? `${value("x")}.${value("y")}` : "", axes = [value("x"), value("y")];

  /// Every other axis of a map is another key.
  function swap(changed) {
    const [x, y] = axes;
    if (isMap && value("x") === value("y")) form.elements[changed === "x" ? "y" : "x"].value = changed === "x" ? x : y;
    axes = [value("x"), value("y")];
  }

  function show() {
    const compare = value("compare");
    for (const label of form.querySelectorAll("[data-compare]")) label.hidden = label.dataset.compare !== compare;
    const view = `${value("measure")}.${value("group")}.${compare}.${value(`base-${compare}`)}`;
    const [says = "", legend = "", ...drawn] = (held.get(`view ${view}`)?.textContent ?? "").split("\n");
    at("result").innerHTML = says;
    at("legend").innerHTML = legend;
    const empty = [];
    if (isMap) {
      if (map !== axes.join(".")) charts.innerHTML = held.get(`map ${(map = axes.join("."))}`).textContent;
      for (const cell of charts.querySelectorAll(".cell[data-point]")) {
        cell.innerHTML = (drawn[cell.dataset.point] ?? "").replace("~", charts.dataset.outline);
        cell.setAttribute("role", "button");
        cell.setAttribute("tabindex", "0");
        cell.setAttribute("aria-pressed", "false");
        cell.setAttribute("data-told", told(cell));
        cell.setAttribute("aria-label", cell.dataset.told);
      }
      for (const facet of charts.querySelectorAll(".facet")) {
        facet.hidden = !facet.querySelector("rect:not(.blank)");
        if (facet.hidden) empty.push(facet.querySelector("h3")?.textContent ?? "this measure");
      }
    } else {
      charts.innerHTML = drawn.join("\n");
      if (!charts.firstElementChild) empty.push("this measure");
    }
    at("nothing").hidden = !empty.length;
    at("nothing").textContent = `Nothing to show for ${empty.join("; ")}.`;
    detail.textContent = isMap ? "Choose a cell for its settings and the line that repeats it." : "";
  }

  const words = (cell) => [...cell.querySelectorAll("text")].map((one) => one.textContent);
  const told = (cell) => `${points[cell.dataset.point].name}: ${words(cell).join(" ")}`;

  function explain(cell) {
    const { name, runs, command } = points[cell.dataset.point], [main, ...more] = words(cell);
    for (const other of charts.querySelectorAll(".cell[data-point]")) other.setAttribute("aria-pressed", String(other === cell));
    const bold = Object.assign(document.createElement("b"), { textContent: main });
    const code = Object.assign(document.createElement("code"), { textContent: command });
    detail.replaceChildren(`${name}: `, bold, ` ${more.join(" ")} (${runs} run${runs === 1 ? "" : "s"}). One of them with all its records:`, code);
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    swap(event.target.name);
    show();
  });
  const cellOf = (event) => event.target.closest?.(".cell[data-point]");
  charts.addEventListener("click", (event) => cellOf(event) && explain(cellOf(event)));
  charts.addEventListener("keydown", (event) => {
    if ((event.key !== "Enter" && event.key !== " ") || !cellOf(event)) return;
    event.preventDefault();
    explain(cellOf(event));
  });
  form.hidden = false;
  show();
})();
