// The bar above the charts: which metrics, which axis, how smooth, which scales.

const TYPING_MS = 200;

export class Controls {
  /** `change(changes)` is called with what somebody has chosen, in the words of address.js. */
  constructor(root, change) {
    this.part = (name) => root.querySelector(`[data-part=${name}]`);
    this.axes = [...root.querySelectorAll("[data-axis]")];
    for (const button of this.axes) button.addEventListener("click", () => change({ axis: button.dataset.axis, from: null, to: null }));
    for (const name of ["logx", "logy"]) this.part(name).addEventListener("click", ({ currentTarget }) => change({ [name]: currentTarget.getAttribute("aria-pressed") !== "true" }));
    this.part("smoothing").addEventListener("input", ({ target }) => change({ smoothing: weightOf(Number(target.value)) }));
    this.part("search").addEventListener("input", ({ target }) => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => {
        this.typing = null;
        change({ q: target.value.trim() });
      }, TYPING_MS);
    });
    this.part("search").addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    this.part("reset").addEventListener("click", () => change({ from: null, to: null }, { isStep: true }));
    this.part("all-keys").addEventListener("click", () => change({ keys: [], q: "" }));
    this.part("table")?.addEventListener("click", ({ currentTarget }) => {
      currentTarget.setAttribute("aria-pressed", String(root.classList.toggle("ch-tabled")));
    });
  }

  show(state) {
    for (const button of this.axes) button.setAttribute("aria-pressed", String(button.dataset.axis === state.axis));
    for (const name of ["logx", "logy"]) this.part(name).setAttribute("aria-pressed", String(state[name]));
    const slider = this.part("smoothing");
    if (document.activeElement !== slider) slider.value = placeOf(state.smoothing);
    slider.setAttribute("aria-valuetext", state.smoothing ? String(state.smoothing) : "off");
    this.part("smoothed").textContent = state.smoothing ? state.smoothing.toFixed(state.smoothing > 0.99 ? 3 : 2) : "off";
    if (!this.typing && document.activeElement !== this.part("search")) this.part("search").value = state.q;
    this.part("reset").hidden = state.from === null;
    this.part("all-keys").hidden = !state.keys.length;
  }

  close() {
    clearTimeout(this.typing);
  }
}

// The slider's last tenth is for 0.9 to 0.999, where the difference is.
const KNEE = 90;

function weightOf(place) {
  if (place <= KNEE) return place / 100;
  return Math.round((0.9 + ((place - KNEE) / (100 - KNEE)) * 0.099) * 1000) / 1000;
}

function placeOf(weight) {
  return weight <= KNEE / 100 ? Math.round(weight * 100) : Math.round(KNEE + ((weight - 0.9) / 0.099) * (100 - KNEE));
}
