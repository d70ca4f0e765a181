// The dialog in which a panel is made or changed (templates/tracking/_panel_dialog.html).

import { axisOfMetric, metricOfAxis } from "../axes.js";
import { sliderPosition, weightAt } from "../controls.js";

const FLAGS = ["log_x", "log_y", "is_pinned"];

/**
 * Opens the dialog. `keys`: all metrics, sorted. `save(panel)` stores the panel; the dialog stays open and shows the
 * message if it throws.
 */
export function openPanelDialog(template, { heading, panel, keys }, save) {
  const dialog = template.content.firstElementChild.cloneNode(true);
  const form = dialog.querySelector("form");
  const error = dialog.querySelector("[data-part=error]");
  dialog.querySelector("h2").textContent = heading;
  fillForm(form, panel, [...new Set([...panel.metrics, metricOfAxis(panel.x), ...keys])].filter(Boolean));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const changed = readForm(form, panel);
    error.textContent = changed.metrics.length ? "" : "Choose at least one metric.";
    if (!changed.metrics.length) return;
    const submit = form.querySelector("[type=submit]");
    submit.disabled = true;
    try {
      await save(changed);
      dialog.close();
    } catch (refusal) {
      error.textContent = refusal.message;
      submit.disabled = false;
    }
  });
  dialog.querySelector("[data-part=cancel]").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function fillForm(form, panel, keys) {
  const { elements } = form;
  form.querySelector("optgroup").append(...keys.map((key) => new Option(key, axisOfMetric(key))));
  elements.x.value = panel.x;
  elements.title.value = panel.title;
  elements.width.value = String(panel.width);
  for (const name of FLAGS) elements[name].checked = panel[name];
  elements.smoothing.value = String(sliderPosition(panel.smoothing));
  const showSmoothing = () => {
    const weight = weightAt(Number(elements.smoothing.value));
    form.querySelector("output").textContent = weight ? String(weight) : "off";
  };
  elements.smoothing.addEventListener("input", showSmoothing);
  showSmoothing();
  const list = form.querySelector("[data-part=metrics]");
  list.append(...keys.map((key) => choice(key, panel.metrics.includes(key))));
  elements.find.addEventListener("input", () => {
    const words = elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const label of list.children) {
      const name = label.textContent.toLowerCase();
      label.hidden = !words.every((word) => name.includes(word));
    }
  });
  elements.find.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
}

function choice(key, isChosen) {
  const label = document.createElement("label");
  label.className = "th-check";
  const box = Object.assign(document.createElement("input"), {
    type: "checkbox",
    name: "metrics",
    value: key,
    checked: isChosen,
  });
  label.append(box, key);
  return label;
}

function readForm(form, panel) {
  const { elements } = form;
  const chosen = [...form.querySelectorAll("[name=metrics]:checked")].map(({ value }) => value);
  // The weight stays exact if the slider was not moved.
  const isMoved = Number(elements.smoothing.value) !== sliderPosition(panel.smoothing);
  return {
    metrics: chosen,
    title: elements.title.value.trim(),
    x: elements.x.value,
    smoothing: isMoved ? weightAt(Number(elements.smoothing.value)) : panel.smoothing,
    width: Number(elements.width.value),
    ...Object.fromEntries(FLAGS.map((name) => [name, elements[name].checked])),
  };
}
