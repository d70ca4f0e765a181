// Groups of metrics with the same prefix: train/loss and train/accuracy share the heading "train".

const NO_PREFIX = "";
const MACHINE_GROUP = "system"; // less important than what the script logs, so it comes last and closed
const LABELS = { [NO_PREFIX]: "Metrics" };

/** Returns the prefix of a metric's name, or "". */
export function groupOf(key) {
  const at = key.indexOf("/");
  return at > 0 ? key.slice(0, at) : NO_PREFIX;
}

/** Sorts groups: metrics without a prefix first, those of the machine last, the others by name. */
export function compareGroups(left, right) {
  const rank = (name) => (name === NO_PREFIX ? 0 : name === MACHINE_GROUP ? 2 : 1);
  return rank(left) - rank(right) || left.localeCompare(right, "en", { numeric: true });
}

/** Returns the first of these groups that comes after `name`, or undefined. */
export function groupAfter(name, names) {
  return names.filter((other) => compareGroups(name, other) < 0).sort(compareGroups)[0];
}

/** Returns metrics sorted by group, and by name within a group. */
export function sortByGroup(keys) {
  return [...keys].sort(
    (left, right) => compareGroups(groupOf(left), groupOf(right)) || left.localeCompare(right, "en", { numeric: true }),
  );
}

/** Returns the metrics to show, sorted: those in `keys`, if any, whose names contain every word of `q`. */
export function matchingKeys(allKeys, { q, keys }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (key) => words.every((word) => key.toLowerCase().includes(word));
  return sortByGroup(allKeys).filter((key) => matches(key) && (!keys.length || keys.includes(key)));
}

/**
 * Returns {closed, opened}: the names of groups that are not as they are by default. `shown`: [{name, isOpenByDefault,
 * isOpen}]. Groups that the filter hides keep their state.
 */
export function foldState(shown, { closed, opened }) {
  const names = new Set(shown.map(({ name }) => name));
  const isHidden = (name) => !names.has(name);
  const changed = (isOpen) =>
    shown.filter((group) => group.isOpen === isOpen && group.isOpenByDefault !== isOpen).map(({ name }) => name);
  return {
    closed: [...closed.filter(isHidden), ...changed(false)],
    opened: [...opened.filter(isHidden), ...changed(true)],
  };
}

export class MetricGroup {
  constructor(name, state, onToggle) {
    this.name = name;
    this.charts = [];
    this.element = document.createElement("details");
    this.element.className = "ch-group";
    this.element.dataset.loaded = "";
    this.element.dataset.group = name;
    this.isOpenByDefault = name !== MACHINE_GROUP;
    this.element.open = this.isOpenByDefault ? !state.closed.includes(name) : state.opened.includes(name);
    this.element.innerHTML =
      '<summary><span></span><span class="th-count"></span></summary><div class="ch-panels"></div>';
    this.element.querySelector("summary > span").textContent = LABELS[name] ?? name;
    this.panels = this.element.querySelector(".ch-panels");
    this.element.addEventListener("toggle", () => this.element.isConnected && onToggle());
  }

  get isEmpty() {
    return this.charts.length === 0;
  }

  titleOf(key) {
    return this.name === NO_PREFIX ? key : key.slice(this.name.length + 1) || key;
  }

  add(chart) {
    const next = this.charts.find((other) => other.key.localeCompare(chart.key, "en", { numeric: true }) > 0);
    this.panels.insertBefore(chart.element, next?.element ?? null);
    this.charts = [...this.charts, chart].sort((left, right) =>
      left.key.localeCompare(right.key, "en", { numeric: true }),
    );
  }

  remove(chart) {
    this.charts = this.charts.filter((other) => other !== chart);
  }

  count() {
    this.element.querySelector(".th-count").textContent = this.charts.length;
  }
}
