// Filters and sorts the lanes: all, failed or silent ones; by rank (grouped by node), by silence or by size.

const FAILED = new Set(["Failed", "Lost"]);

export class LaneFilter {
  constructor() {
    this.filter = "all";
    this.order = "rank";
  }

  /** Listens to the buttons among the lanes. Call it after every swap, which replaces them. */
  attach(element) {
    this.element = element;
    this.shownOrder = "rank";
    this.lanes = [...element.querySelectorAll("[data-rank]")];
    this.groups = new Map(
      [...element.querySelectorAll(".lane-group")].map((group) => [group, [...group.querySelectorAll(".lane")]]),
    );
    for (const button of element.querySelectorAll("[data-filter]")) {
      button.addEventListener("click", () => this.setFilter(button.dataset.filter));
    }
    const order = element.querySelector("[data-sort]");
    if (!order) return;
    order.value = this.order;
    order.addEventListener("change", () => {
      this.order = order.value;
      this.update();
    });
    this.update();
  }

  setFilter(filter) {
    this.filter = filter;
    this.update();
  }

  /** Counts, hides and sorts the lanes again, because states or silences have changed. */
  update() {
    if (!this.element?.querySelector("[data-filter]")) return;
    const counts = { all: this.lanes.length, failed: 0, silent: 0 };
    for (const lane of this.lanes) {
      const matches = { all: true, failed: FAILED.has(lane.dataset.state), silent: Boolean(lane.dataset.silence) };
      counts.failed += matches.failed;
      counts.silent += matches.silent;
      lane.hidden = !matches[this.filter];
    }
    for (const button of this.element.querySelectorAll("[data-filter]")) {
      const { filter } = button.dataset;
      button.setAttribute("aria-pressed", filter === this.filter);
      button.disabled = counts[filter] === 0 && filter !== this.filter;
      button.lastElementChild.textContent = counts[filter];
    }
    this.sort();
    for (const [group, lanes] of this.groups)
      group.hidden = this.order !== "rank" || lanes.every((lane) => lane.hidden);
    this.element.querySelector('[data-part="none-shown"]').hidden = this.lanes.some((lane) => !lane.hidden);
  }

  sort() {
    const flatList = this.element.querySelector(".lanes-flat");
    if (this.order === "rank") {
      if (this.shownOrder !== "rank") for (const [group, lanes] of this.groups) group.append(...lanes);
    } else {
      const key = this.order === "size" ? (lane) => Number(lane.dataset.size) : (lane) => Number(lane.dataset.silence);
      const sorted = this.lanes.toSorted(
        (left, right) => key(right) - key(left) || left.dataset.rank - right.dataset.rank,
      );
      // Moving a row takes the focus from it, so move only the rows that are out of place.
      sorted.forEach(
        (lane, index) =>
          flatList.children[index] !== lane && flatList.insertBefore(lane, flatList.children[index] ?? null),
      );
    }
    this.shownOrder = this.order;
  }
}
