"use strict";

// Replaces the last state with each new one, part by part, so that what the user reads, has
// selected or points at stays where it is.

const main = document.querySelector("main");
const state = document.getElementById("state");

/** Whether somebody points at a part, or has selected something in it. */
function isHeld(part) {
  const selection = getSelection();
  const isSelected = selection !== null && !selection.isCollapsed && selection.containsNode(part, true);
  return isSelected || (part.matches(":hover") && part.querySelector("svg") !== null);
}

function replace(old, made) {
  const places = [...old.querySelectorAll(".scroll")].map((table) => table.scrollLeft);
  const wide = old.matches(".scroll") ? old.scrollLeft : 0;
  old.replaceWith(made);
  [...made.querySelectorAll(".scroll")].forEach((table, index) => {
    table.scrollLeft = places[index] ?? 0;
  });
  if (made.matches(".scroll")) made.scrollLeft = wide;
}

function show(html) {
  const next = new DOMParser().parseFromString(html, "text/html").body;
  const made = [...next.children].map((part) => document.adoptNode(part));
  const old = [...main.children];
  made.forEach((part, index) => {
    if (index >= old.length) main.append(part);
    else if (!old[index].isEqualNode(part) && !isHeld(old[index])) replace(old[index], part);
  });
  old.slice(made.length).forEach((part) => part.remove());
  state.textContent = `The last hour, as of ${new Date().toLocaleTimeString()}.`;
  state.className = "";
  state.removeAttribute("role");
}

const source = new EventSource("events");
source.onmessage = (event) => show(event.data);
source.onerror = () => {
  state.textContent = "Knee does not answer. Has it been stopped? Below is the last state received.";
  state.className = "verdict invalid";
  // Read aloud, unlike a time every other second.
  state.setAttribute("role", "alert");
};
