// Fetches each object of the page once all that it comes after have arrived. LATER and COUNT are
// in the HTML.
const here = new Set(["index.html"]);
const asked = new Set();

function arrived(element) {
  note((element.src || element.href).split("/").pop());
}

function note(name) {
  here.add(name);
  for (const [other, after] of LATER) {
    if (!asked.has(other) && after.every((one) => here.has(one))) {
      asked.add(other);
      fetchAs(other);
    }
  }
  window.finished = here.size === COUNT;
}

function fetchAs(name) {
  const done = () => note(name);
  if (name.startsWith("font")) {
    // The bytes are no font; that they came is what counts.
    new FontFace("f" + name.slice(5), `url(${name})`).load().then(done, done);
    return;
  }
  const element = document.createElement(name.startsWith("image") ? "img" : "script");
  element.onload = element.onerror = done;
  element.src = name;
  document.body.append(element);
}

// Time at which each object was complete, in ms since the navigation, its status and its bytes.
function results() {
  const of = (entry) =>
    ({ name: entry.name.split("/").pop(), ms: entry.responseEnd, status: entry.responseStatus,
       protocol: entry.nextHopProtocol });
  const all = [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource")];
  return all.filter((entry) => entry.name.startsWith("http")).map(of);
}
