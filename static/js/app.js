// The mount registry: `mount("name", setUp)` runs setUp(element) once for every [data-mount~="name"],
// now and after every htmx swap. setUp may return a function that is called when the element is removed.

const setUps = new Map();
const mounted = new WeakMap();

export function mount(name, setUp) {
  setUps.set(name, setUp);
  scan(document, name);
}

/** Mounts what a module has added to the page by itself. */
export function mountIn(root) {
  scan(root);
}

/** Stops what is mounted in an element that a module is about to remove by itself. */
export function unmountIn(root) {
  for (const element of [root, ...root.querySelectorAll("[data-mount]")]) stop(element);
}

function scan(root, only) {
  const elements = [...root.querySelectorAll("[data-mount]")];
  if (root instanceof Element && root.matches("[data-mount]")) elements.push(root);
  for (const element of elements) {
    for (const name of element.dataset.mount.split(/\s+/)) {
      if (!only || only === name) start(element, name);
    }
  }
}

function start(element, name) {
  const setUp = setUps.get(name);
  const done = mounted.get(element) ?? new Map();
  if (!setUp || done.has(name)) return;
  mounted.set(element, done);
  done.set(name, null);
  done.set(name, setUp(element) ?? null);
}

function stop(element) {
  for (const tearDown of mounted.get(element)?.values() ?? []) tearDown?.();
  mounted.delete(element);
}

document.addEventListener("htmx:load", (event) => scan(event.detail.elt));
document.addEventListener("htmx:beforeCleanupElement", (event) => stop(event.detail.elt));
