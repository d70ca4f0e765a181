// Sizes and colours that the server knows, such as the length of a bar: `data-measures="a:1.5 b:var(--now)"` sets the
// custom properties --a and --b of the element, which the style sheets read. The content security policy of every page
// refuses style attributes; this script accepts numbers, colours and variables only. It is loaded before the first
// paint (not as a module), so that nothing jumps.
(() => {
  const NAME = /^[a-z]+$/;
  const VALUE = /^(-?\d+(\.\d+)?%?|#[0-9a-f]{3,8}|var\(--[a-z0-9-]+\))$/;

  const applyMeasures = (element) => {
    for (const pair of element.dataset.measures.split(/\s+/)) {
      const [name, value] = pair.split(":");
      if (NAME.test(name) && VALUE.test(value)) element.style.setProperty(`--${name}`, value);
    }
  };

  const applyMeasuresBelow = (root) => {
    if (root.dataset?.measures !== undefined) applyMeasures(root);
    for (const element of root.querySelectorAll("[data-measures]")) applyMeasures(element);
  };

  // Covers elements that the parser adds, that htmx swaps in, and that a script creates.
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) applyMeasuresBelow(node);
    }
  }).observe(document, { childList: true, subtree: true });
  // The observer runs too late for other handlers of this event that read the properties, so capture it before them.
  addEventListener("htmx:afterSwap", () => applyMeasuresBelow(document), true);
  applyMeasuresBelow(document);
})();
