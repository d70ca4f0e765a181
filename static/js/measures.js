// Sizes and colours that the server knows, such as the length of a bar: `data-measures="a:1.5 b:var(--now)"` sets the custom
// properties --a and --b of the element, which the style sheets read. The content security policy of every page refuses style
// attributes; this takes numbers, colours and variables only. Loaded before the first paint (not a module), so that nothing jumps.
(() => {
  const NAME = /^[a-z]+$/;
  const VALUE = /^(-?\d+(\.\d+)?%?|#[0-9a-f]{3,8}|var\(--[a-z0-9-]+\))$/;

  const measure = (element) => {
    for (const pair of element.dataset.measures.split(/\s+/)) {
      const [name, value] = pair.split(":");
      if (NAME.test(name) && VALUE.test(value)) element.style.setProperty(`--${name}`, value);
    }
  };

  const measureBelow = (root) => {
    if (root.dataset?.measures !== undefined) measure(root);
    for (const element of root.querySelectorAll("[data-measures]")) measure(element);
  };

  // What the parser adds, what htmx swaps in, and what a script makes.
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) measureBelow(node);
    }
  }).observe(document, { childList: true, subtree: true });
  // Ahead of the other handlers of this event, which read them: the observer is called later.
  addEventListener("htmx:afterSwap", () => measureBelow(document), true);
  measureBelow(document);
})();
