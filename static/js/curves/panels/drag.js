// Moves a panel with the mouse or a finger: its handle is pressed, a mark shows where it will stand, and a release
// drops it there.

const MARKS = ["cv-drop-before", "cv-drop-after"];

/**
 * `list`: the element with the panels. `onDrop(panel, other, isAfter)`: the panel's element was dropped before or after
 * another one.
 */
export function makeDraggable(handle, panel, list, onDrop) {
  let target = null;
  const clear = () => {
    for (const other of list.children) other.classList.remove(...MARKS);
    panel.classList.remove("cv-dragged");
    target = null;
  };
  handle.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    handle.setPointerCapture(event.pointerId);
    panel.classList.add("cv-dragged");
  });
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const other = document.elementFromPoint(event.clientX, event.clientY)?.closest(".cv-panel");
    clear();
    panel.classList.add("cv-dragged");
    if (!other || other === panel || other.parentElement !== list) return;
    target = { other, isAfter: isBehind(other, event) };
    other.classList.add(MARKS[Number(target.isAfter)]);
  });
  handle.addEventListener("pointerup", () => {
    const dropped = target;
    clear();
    if (dropped) onDrop(panel, dropped.other, dropped.isAfter);
  });
  handle.addEventListener("pointercancel", clear);
  handle.addEventListener("lostpointercapture", clear);
}

function isBehind(other, { clientX }) {
  const box = other.getBoundingClientRect();
  return clientX > box.left + box.width / 2;
}
