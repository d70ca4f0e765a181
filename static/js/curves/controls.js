// The bar above the charts: filter of metrics, axis, smoothing and scales.

const TYPING_MS = 200;

export class Controls {
  /** `onChange(changes)` is called with the part of the state (address.js) that the reader has changed. */
  constructor(root, onChange) {
    this.part = (name) => root.querySelector(`[data-part=${name}]`);
    this.axes = [...root.querySelectorAll("[data-axis]")];
    for (const button of this.axes)
      button.addEventListener("click", () => onChange({ axis: button.dataset.axis }));
    for (const name of ["logx", "logy"])
      this.part(name).addEventListener("click", ({ currentTarget }) =>
        onChange({ [name]: currentTarget.getAttribute("aria-pressed") !== "true" }),
      );
    this.part("smoothing").addEventListener("input", ({ target }) =>
      onChange({ smoothing: weightAt(Number(target.value)) }),
    );
    this.part("search").addEventListener("input", ({ target }) => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => {
        this.typing = null;
        onChange({ q: target.value.trim() });
      }, TYPING_MS);
    });
    this.part("search").addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    this.part("reset").addEventListener("click", () => onChange({ spans: {} }, { isStep: true }));
    this.part("events").addEventListener("click", ({ currentTarget }) =>
      onChange({ events: currentTarget.getAttribute("aria-pressed") !== "true" }),
    );
    this.part("all-keys").addEventListener("click", () => onChange({ keys: [], q: "" }));
    this.part("table")?.addEventListener("click", ({ currentTarget }) => {
      currentTarget.setAttribute("aria-pressed", String(root.classList.toggle("ch-tabled")));
    });
  }

  show(state) {
    for (const button of this.axes) button.setAttribute("aria-pressed", String(button.dataset.axis === state.axis));
    for (const name of ["logx", "logy", "events"]) this.part(name).setAttribute("aria-pressed", String(state[name]));
    const slider = this.part("smoothing");
    if (document.activeElement !== slider) slider.value = sliderPosition(state.smoothing);
    slider.setAttribute("aria-valuetext", state.smoothing ? String(state.smoothing) : "off");
    this.part("smoothed").textContent = state.smoothing
      ? state.smoothing.toFixed(state.smoothing > 0.99 ? 3 : 2)
      : "off";
    if (!this.typing && document.activeElement !== this.part("search")) this.part("search").value = state.q;
    this.part("reset").hidden = !Object.keys(state.spans).length;
    this.part("all-keys").hidden = !state.keys.length;
  }

  close() {
    clearTimeout(this.typing);
  }
}

// The last tenth of the slider covers 0.9 to 0.999, where small changes matter.
const FINE_FROM = 90;

/** Returns the smoothing weight at a position (0 to 100) of the slider. */
export function weightAt(position) {
  if (position <= FINE_FROM) return position / 100;
  return Math.round((0.9 + ((position - FINE_FROM) / (100 - FINE_FROM)) * 0.099) * 1000) / 1000;
}

/** Returns the position of the slider for a smoothing weight. */
export function sliderPosition(weight) {
  return weight <= FINE_FROM / 100
    ? Math.round(weight * 100)
    : Math.round(FINE_FROM + ((weight - 0.9) / 0.099) * (100 - FINE_FROM));
}
