"use strict";

// Asks for the positions of the sliders as they move: for a beginning of the run, which comes soon,
// and once they rest for the whole. Only the newest positions are asked for.

const compare = document.getElementById("compare");
const results = document.getElementById("results");
const state = document.getElementById("state");
const sides = ["a", "b"].map((name) => ({
  name,
  box: document.getElementById(`side-${name}`),
  file: document.getElementById(`${name}-file`),
  text: document.querySelector(`#text-${name} pre`),
  details: document.getElementById(`text-${name}`),
}));
const moving = (side) => [...side.box.querySelectorAll("input, select")];

/** Whether a beginning is under way, positions are newer than it, and what would end the whole. */
let asking = false;
let newer = false;
let whole = null;

const positions = (side) => `${side.name}=${moving(side).map((one) => one.value).join(",")}`;

function shown() {
  return sides.filter((side) => side.name === "a" || compare.checked);
}

/** Writes the values beside the sliders. */
function label(side) {
  for (const slider of side.box.querySelectorAll("input")) {
    const words = slider.dataset.steps.split("\n")[Number(slider.value)];
    document.getElementById(`${slider.id}-text`).textContent = words;
    slider.setAttribute("aria-valuetext", words);
  }
  side.file.href = `file?${positions(side)}`;
}

function show(drawn, of) {
  results.innerHTML = drawn.body;
  results.dataset.of = of;
  results.dataset.complete = drawn.complete;
  results.setAttribute("aria-busy", String(!drawn.complete));
  shown().forEach((side, number) => {
    side.text.textContent = drawn.files[number];
  });
  // Read aloud, so only once the sliders rest.
  if (drawn.complete && !newer) state.textContent = drawn.says;
  state.className = "";
}

function fail(words) {
  state.textContent = words;
  state.className = "verdict invalid";
}

/** Returns what an address draws; `undefined` if it fails, which is said, or was left. */
async function ask(address, signal) {
  try {
    const answer = await fetch(address, { signal });
    if (answer.ok) return await answer.json();
    fail((await answer.text()).trim());
  } catch (error) {
    if (error.name !== "AbortError") fail("Knee does not answer. Has it been stopped?");
  }
  return undefined;
}

async function draw() {
  newer = true;
  whole?.abort();
  whole = null;
  if (asking) return;
  asking = true;
  let drawn, of;
  while (newer) {
    newer = false;
    of = shown().map(positions).join("&");
    drawn = await ask(`run?${of}`);
    if (drawn && drawn.files.length === shown().length) show(drawn, of);
  }
  asking = false;
  if (!drawn || drawn.complete) return;
  state.textContent = "This is the beginning of the run; the rest follows.";
  const current = new AbortController();
  whole = current;
  drawn = await ask(`run?${of}&whole`, current.signal);
  if (drawn && !current.signal.aborted) show(drawn, of);
}

function follow() {
  const both = compare.checked;
  sides[1].box.disabled = !both;
  sides[1].details.hidden = !both;
  draw();
}

async function copy(button) {
  const side = sides.find(({ name }) => name === button.dataset.copy);
  try {
    const answer = await fetch(side.file.href);
    if (!answer.ok) throw new Error(answer.statusText);
    await navigator.clipboard.writeText(await answer.text());
    button.textContent = "Copied";
  } catch {
    // Not allowed to, or Knee has ended: the text is there to be selected.
    side.details.open = true;
    button.textContent = "See below";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

sides.forEach((side) => {
  label(side);
  side.box.addEventListener("input", () => {
    label(side);
    draw();
  });
});
document.getElementById("same").addEventListener("click", () => {
  const values = moving(sides[0]).map((one) => one.value);
  moving(sides[1]).forEach((one, number) => (one.value = values[number]));
  label(sides[1]);
  compare.checked = true;
  follow();
});
compare.addEventListener("change", follow);
document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
document.querySelectorAll("[name=tab]").forEach((tab) =>
  tab.addEventListener("change", () => {
    if (tab.value === "b" && !compare.checked) {
      compare.checked = true;
      follow();
    }
  }));
document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
follow();
