// Keeps the keyboard's place when htmx replaces what has the focus. htmx does that itself only for elements with an id;
// a live refresh would otherwise send the reader of a list back to the beginning of the page.

const KEYS = ["href", "aria-label", "name"];
const places = new WeakMap(); // request -> {selector, index} of what had the focus before its answer was put in

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const element = document.activeElement;
  const key = KEYS.find((each) => element.getAttribute(each));
  if (!key || element.id || !detail.target.contains(element)) return;
  const selector = `${element.localName}[${key}="${CSS.escape(element.getAttribute(key))}"]`;
  places.set(detail.xhr, { selector, index: [...document.querySelectorAll(selector)].indexOf(element) });
});

document.addEventListener("htmx:afterSwap", ({ detail }) => {
  const place = places.get(detail.xhr);
  // The focus is at the body if what had it is gone, and elsewhere if the answer or the reader has moved it.
  if (place && document.activeElement === document.body) {
    document.querySelectorAll(place.selector)[place.index]?.focus({ preventScroll: true });
  }
});
