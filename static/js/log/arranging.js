// Which lanes are shown, and in which order: all, failed or silent; by rank (node by node), silence or bytes.

const FAILED = new Set(["Failed", "Lost"]);

export class Arranging {
  constructor() {
    this.filter = "all";
    this.order = "rank";
  }

  /** Listen to the tools that stand among the lanes; these are new after every swap. */
  use(element) {
    this.element = element;
    this.arranged = "rank";
    this.lanes = [...element.querySelectorAll("[data-rank]")];
    this.groups = new Map([...element.querySelectorAll(".lane-group")].map((group) => [group, [...group.querySelectorAll(".lane")]]));
    for (const button of element.querySelectorAll("[data-filter]")) {
      button.addEventListener("click", () => this.show(button.dataset.filter));
    }
    const order = element.querySelector("[data-sort]");
    if (!order) return;
    order.value = this.order;
    order.addEventListener("change", () => {
      this.order = order.value;
      this.arrange();
    });
    this.arrange();
  }

  show(filter) {
    this.filter = filter;
    this.arrange();
  }

  /** States and silences have changed: count, hide and order anew. */
  arrange() {
    if (!this.element?.querySelector("[data-filter]")) return;
    const counts = { all: this.lanes.length, failed: 0, silent: 0 };
    for (const lane of this.lanes) {
      const kinds = { all: true, failed: FAILED.has(lane.dataset.state), silent: Boolean(lane.dataset.silence) };
      counts.failed += kinds.failed;
      counts.silent += kinds.silent;
      lane.hidden = !kinds[this.filter];
    }
    for (const button of this.element.querySelectorAll("[data-filter]")) {
      const { filter } = button.dataset;
      button.setAttribute("aria-pressed", filter === this.filter);
      button.disabled = counts[filter] === 0 && filter !== this.filter;
      button.lastElementChild.textContent = counts[filter];
    }
    this.sort();
    for (const [group, lanes] of this.groups) group.hidden = this.order !== "rank" || lanes.every((lane) => lane.hidden);
    this.element.querySelector('[data-part="none-shown"]').hidden = this.lanes.some((lane) => !lane.hidden);
  }

  sort() {
    const flat = this.element.querySelector(".lanes-flat");
    if (this.order === "rank") {
      if (this.arranged !== "rank") for (const [group, lanes] of this.groups) group.append(...lanes);
    } else {
      const key = this.order === "size" ? (lane) => Number(lane.dataset.size) : (lane) => Number(lane.dataset.silence);
      const sorted = this.lanes.toSorted((left, right) => key(right) - key(left) || left.dataset.rank - right.dataset.rank);
      // Moving a row takes the focus from it, so only what stands wrong is moved.
      sorted.forEach((lane, index) => flat.children[index] !== lane && flat.insertBefore(lane, flat.children[index] ?? null));
    }
    this.arranged = this.order;
  }
}
