// Shows a table, a figure or text of a run, which the server has read from the file. All of it is untrusted: it becomes
// text, or stands in a sandboxed frame.

const AFTER_MS = 150; // a slider that moves passes many steps
const waiting = new WeakMap();
const observer = globalThis.IntersectionObserver && new IntersectionObserver(loadVisible, { rootMargin: "200px" });

/** Shows the document at `address` in `element` once it can be seen. `frame`: the address of a page or of a figure. */
export function showDocument(element, address, { isPage, frame, label }) {
  if (waiting.get(element)?.address === address) return;
  clearTimeout(waiting.get(element)?.timer);
  waiting.set(element, { address, isPage, frame, label });
  observer.unobserve(element);
  observer.observe(element);
}

function loadVisible(entries) {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    const wanted = waiting.get(target);
    wanted.timer = setTimeout(() => load(target, wanted), AFTER_MS);
  }
}

async function load(element, wanted) {
  if (waiting.get(element) !== wanted) return; // the slider has moved on
  if (wanted.isPage) {
    element.replaceChildren(frameOf(wanted.frame, wanted.label));
    return;
  }
  element.setAttribute("aria-busy", "true");
  const parts = await fetch(wanted.address)
    .then(async (response) => {
      const content = await response.json();
      return response.ok ? draw(content, wanted) : [sentence(content.detail)];
    })
    .catch(() => [sentence("This file could not be loaded. Reload the page.")]);
  if (waiting.get(element) !== wanted) return;
  element.replaceChildren(...parts);
  element.removeAttribute("aria-busy");
}

function draw({ kind, text, table, is_cut: isCut, sentence: reason }, { frame, label }) {
  const parts = reason ? [sentence(reason)] : [];
  if (kind === "table") parts.push(tableOf(table));
  else if (kind === "figure") parts.push(frameOf(frame, label));
  else if (text) parts.push(Object.assign(document.createElement("pre"), { className: "md-text", textContent: text }));
  if (isCut) parts.push(sentence("Only the beginning is shown; open the file to see more."));
  return parts;
}

function tableOf({ columns, rows }) {
  const table = Object.assign(document.createElement("table"), { className: "th-table" });
  const head = table.createTHead().insertRow();
  for (const name of columns) {
    head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: name }));
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) line.insertCell().textContent = value;
  }
  return table;
}

function frameOf(address, label) {
  const frame = Object.assign(document.createElement("iframe"), { className: "md-frame", title: label });
  frame.setAttribute("sandbox", "allow-scripts");
  frame.referrerPolicy = "no-referrer";
  frame.src = address;
  return frame;
}

function sentence(text) {
  return Object.assign(document.createElement("p"), { className: "md-sentence th-muted", textContent: text });
}
