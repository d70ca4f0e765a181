// The order of panels: pinned ones stand before the others, and stay there when they are moved.

/** Returns the panels with the one at `from` moved to the position `to`, within those that are pinned like it. */
export function movePanel(panels, from, to) {
  const panel = panels[from];
  const others = panels.filter((_, index) => index !== from);
  const pinned = others.filter((other) => other.is_pinned).length;
  const [low, high] = panel.is_pinned ? [0, pinned] : [pinned, others.length];
  const place = Math.min(Math.max(to, low), high);
  return [...others.slice(0, place), panel, ...others.slice(place)];
}

/** Returns the panels with the one at `index` replaced; if it is pinned or unpinned by that, it changes its place. */
export function replacePanel(panels, index, panel) {
  const others = panels.filter((_, other) => other !== index);
  if (panel.is_pinned === panels[index].is_pinned) return panels.map((old, other) => (other === index ? panel : old));
  return addPanel(others, panel);
}

/** Returns the panels with one more, as the last of the pinned ones if it is pinned, or else as the last of all. */
export function addPanel(panels, panel) {
  const place = panel.is_pinned ? panels.filter((other) => other.is_pinned).length : panels.length;
  return [...panels.slice(0, place), panel, ...panels.slice(place)];
}
