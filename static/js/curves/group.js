// Metrics whose names begin alike, train/loss and train/accuracy, under one heading.

const PLAIN = "";
const LAST = "system"; // what the machine measures says less than what the script logs
const LABELS = { [PLAIN]: "Metrics" };

export function groupOf(key) {
  const at = key.indexOf("/");
  return at > 0 ? key.slice(0, at) : PLAIN;
}

/** Those without a prefix first, what the machine measures last, the others by their names. */
export function inOrder(one, other) {
  const rank = (name) => (name === PLAIN ? 0 : name === LAST ? 2 : 1);
  return rank(one) - rank(other) || one.localeCompare(other, "en", { numeric: true });
}

export function byGroup(keys) {
  return [...keys].sort((one, other) => inOrder(groupOf(one), groupOf(other)) || one.localeCompare(other, "en", { numeric: true }));
}

export class Group {
  constructor(name, state, onFold) {
    this.name = name;
    this.charts = [];
    this.element = document.createElement("details");
    this.element.className = "ch-group";
    this.element.dataset.loaded = "";
    this.element.dataset.group = name;
    this.isUsuallyOpen = name !== LAST;
    this.element.open = this.isUsuallyOpen ? !state.closed.includes(name) : state.opened.includes(name);
    this.element.innerHTML = '<summary><span></span><span class="th-count"></span></summary><div class="ch-panels"></div>';
    this.element.querySelector("summary > span").textContent = LABELS[name] ?? name;
    this.panels = this.element.querySelector(".ch-panels");
    this.element.addEventListener("toggle", () => this.element.isConnected && onFold());
  }

  get isEmpty() {
    return this.charts.length === 0;
  }

  titleOf(key) {
    return this.name === PLAIN ? key : key.slice(this.name.length + 1) || key;
  }

  put(chart) {
    const next = this.charts.find((other) => other.key.localeCompare(chart.key, "en", { numeric: true }) > 0);
    this.panels.insertBefore(chart.element, next?.element ?? null);
    this.charts = [...this.charts, chart].sort((one, other) => one.key.localeCompare(other.key, "en", { numeric: true }));
  }

  forget(chart) {
    this.charts = this.charts.filter((other) => other !== chart);
  }

  count() {
    this.element.querySelector(".th-count").textContent = this.charts.length;
  }
}
