// A part that scrolls takes the focus, so that the arrow keys move it, but only while its content does not fit: a stop
// of the Tab key at every table would be in the way.
const SCROLLERS = ".th-scroll, .th-code";
const managed = new WeakSet();
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) update(target.matches(SCROLLERS) ? target : target.closest(SCROLLERS));
});

function update(scroller) {
  if (!scroller?.isConnected) return;
  const fits = scroller.scrollWidth <= scroller.clientWidth && scroller.scrollHeight <= scroller.clientHeight;
  if (fits) {
    for (const name of ["tabindex", "role", "aria-label"]) scroller.removeAttribute(name);
  } else {
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "group");
    scroller.setAttribute("aria-label", nameOf(scroller));
  }
}

/** Returns the heading under which it stands. */
function nameOf(scroller) {
  const heading = scroller.closest("section, .th-card, main")?.querySelector("h1, h2, h3");
  return heading?.textContent.trim() || "Scrollable content";
}

function manageAll() {
  for (const scroller of document.querySelectorAll(SCROLLERS)) {
    // Those that the server made focusable stay so.
    if (managed.has(scroller) || scroller.hasAttribute("tabindex")) continue;
    managed.add(scroller);
    update(scroller);
    resized.observe(scroller);
    for (const child of scroller.children) resized.observe(child);
  }
}

manageAll();
document.addEventListener("htmx:afterSwap", manageAll);
document.addEventListener("htmx:load", manageAll);
