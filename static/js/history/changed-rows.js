// Puts changed rows into an open run table, and all rows into their order.
import { mountIn, unmountIn } from "../app.js";

/**
 * `markup`: the rows that differ, in a body whose data-order has the numbers of all runs of the page; or the content of
 * `element` as a whole. Returns {inUse: new rows in place of those with the pointer, the focus or the keyboard's mark;
 * refolded: new rows whose number of child runs differs; restoreFocus: what to call once rows in use are complete}.
 */
export function placeRows(element, markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  const source = template.content.querySelector("tbody[data-order]");
  if (!source) {
    window.htmx.swap(element, markup, { swapStyle: "innerHTML" });
    return { inUse: [], refolded: [], restoreFocus: () => {} };
  }
  const body = element.querySelector(".th-history tbody");
  const focus = focusIn(body);
  const placed = [...source.rows].map((row) => replaceRow(body, row));
  const numbers = source.dataset.order.split(" ").filter(Boolean);
  arrangeRows(body, numbers);
  element.querySelector(".th-pager").replaceWith(template.content.querySelector(".th-pager"));
  return {
    inUse: placed.filter(({ isInUse }) => isInUse).map(({ row }) => row),
    refolded: placed.filter(({ isRefolded }) => isRefolded).map(({ row }) => row),
    restoreFocus: () => focus && body.querySelector(focus)?.focus({ preventScroll: true }),
  };
}

function replaceRow(body, row) {
  const old = body.querySelector(`#${row.id}`);
  if (!old) {
    body.append(row);
    mountIn(row);
    return { row };
  }
  const isInUse = old.matches(":hover, :focus-within, .th-at");
  row.classList.toggle("th-at", old.matches(".th-at"));
  if (old.dataset.partOf) row.dataset.partOf = old.dataset.partOf;
  const [before, after] = [old, row].map((each) => each.querySelector("[data-unfold]"));
  if (after && before) after.setAttribute("aria-expanded", before.getAttribute("aria-expanded"));
  unmountIn(old);
  old.replaceWith(row);
  mountIn(row);
  return { row, isInUse, isRefolded: before?.textContent !== after?.textContent };
}

/** Moves only rows that are out of place, and removes those that are not in the list with their child runs. */
function arrangeRows(body, numbers) {
  const blocks = new Map(); // a run and the rows of its child runs, which follow it
  let block = [];
  for (const row of body.rows) {
    if (!row.dataset.partOf) blocks.set(row.id, (block = []));
    block.push(row);
  }
  let next = body.rows[0] ?? null;
  for (const number of numbers) {
    for (const row of blocks.get(`run-${number}`) ?? []) {
      if (row === next) next = next.nextElementSibling;
      else body.insertBefore(row, next);
    }
  }
  while (next) {
    const row = next;
    next = row.nextElementSibling;
    unmountIn(row);
    row.remove();
  }
}

/** Returns a selector of the element with the focus, which may be replaced by one like it; "" if it is elsewhere. */
function focusIn(body) {
  const element = document.activeElement;
  const row = body.contains(element) ? element.closest("tr") : null;
  if (!row) return "";
  const name = element.hasAttribute("aria-label") ? "aria-label" : "href";
  return `#${row.id} [${name}="${CSS.escape(element.getAttribute(name) ?? "")}"]`;
}
