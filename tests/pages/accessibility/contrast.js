// Runs axe's rule "color-contrast", which takes most of its time, on the texts of the page that look like none that
// has passed it, on this page or an earlier one. Texts look the same if they and all elements around them have the
// same names, classes and styles that the rule reads. Each text whose background may come from an element that is not
// around it is always checked. `passed`: hashes of looks. Returns {hashes, violations}: the looks that have passed now,
// and axe's results for the texts that fail.
async (passed) => {
  const STYLES = ["color", "webkitTextFillColor", "backgroundColor", "backgroundImage", "opacity", "filter"].concat(
    ["mixBlendMode", "fontSize", "fontWeight", "textShadow", "webkitTextStrokeWidth"],
  );
  const OUT_OF_FLOW = ["absolute", "fixed", "sticky"];
  const FIELDS = "input, select, textarea";
  const RULE = { runOnly: { type: "rule", values: ["color-contrast"] }, iframes: false };
  const known = new Set(passed);
  const styles = new Map();
  const looks = new Map();

  const styleOf = (element) => {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  };

  /** Returns a hash of 53 bits (cyrb53): that two looks share one is not to be expected. */
  const hashOf = (text) => {
    let [high, low] = [0xdeadbeef, 0x41c6ce57];
    for (let place = 0; place < text.length; place += 1) {
      const code = text.charCodeAt(place);
      high = Math.imul(high ^ code, 2654435761);
      low = Math.imul(low ^ code, 1597334677);
    }
    high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
    low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
    return 4294967296 * (2097151 & low) + (high >>> 0);
  };

  const lookOf = (element) => {
    if (!element) return 0;
    if (!looks.has(element)) {
      const style = styleOf(element);
      const name = `${element.localName}.${element.getAttribute("class")}`;
      const own = STYLES.map((property) => style[property]).join(";");
      looks.set(element, hashOf(`${lookOf(element.parentElement)} ${name} ${own}`));
    }
    return looks.get(element);
  };

  /** Returns whether the element may lie over others that are not around it. */
  const isLayer = (element) => {
    const { position, transform, float, marginTop, marginBottom, marginLeft } = styleOf(element);
    if (OUT_OF_FLOW.includes(position) || transform !== "none" || float !== "none") return true;
    return [marginTop, marginBottom, marginLeft].some((margin) => margin.startsWith("-"));
  };

  /** Returns whether only the elements around the text are behind it. */
  const isInFlow = (element) => {
    let isCovered = false; // by an opaque background
    for (let around = element; around; around = around.parentElement) {
      const { backgroundColor, opacity } = styleOf(around);
      if (opacity !== "1") return false;
      isCovered ||= backgroundColor.startsWith("rgb(");
      if (!isCovered && isLayer(around)) return false;
    }
    return true;
  };

  const overlaps = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

  const hasText = (element) =>
    element.matches(FIELDS) || [...element.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim());

  const elements = [...document.body.querySelectorAll("*")].filter((element) => element.checkVisibility());
  const layers = elements
    .filter((element) => !element.ownerSVGElement && isLayer(element))
    .map((element) => ({ layer: element, layerBox: element.getBoundingClientRect() }));
  const isComparable = (element) => {
    if (element.ownerSVGElement || !isInFlow(element)) return false;
    const box = element.getBoundingClientRect();
    return !layers.some(({ layer, layerBox }) => overlaps(box, layerBox) && !layer.contains(element));
  };

  const texts = elements.filter(hasText);
  const comparable = new Set(texts.filter(isComparable));
  const failing = [];
  const check = async (include) => {
    if (!include.length) return;
    const options = { ...RULE, resultTypes: ["violations", "passes"], elementRef: true, selectors: false };
    const results = await axe.run({ include }, options);
    const elementsOf = (rules) => rules.flatMap(({ nodes }) => nodes.map(({ element }) => element));
    for (const element of elementsOf(results.passes)) if (comparable.has(element)) known.add(lookOf(element));
    failing.push(...elementsOf(results.violations));
  };

  const unknown = texts.filter((text) => comparable.has(text) && !known.has(lookOf(text)));
  const firstOfLooks = new Set(new Map(unknown.toReversed().map((text) => [lookOf(text), text])).values());
  await check(texts.filter((text) => !comparable.has(text) || firstOfLooks.has(text)));
  // A look has not passed if axe cannot tell for its first text: it is hidden, cut off or a single letter.
  await check(unknown.filter((text) => !firstOfLooks.has(text) && !known.has(lookOf(text))));
  for (const element of failing) known.delete(lookOf(element));
  const { violations } = failing.length ? await axe.run({ include: failing }, RULE) : { violations: [] };
  const before = new Set(passed);
  return { hashes: [...known].filter((hash) => !before.has(hash)), violations };
};
