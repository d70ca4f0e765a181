// A form with data-mount="confirm" asks for confirmation before it is sent. `data-confirm` is the question, `data-verb`
// labels the button that confirms, `data-no` the button that cancels.
import { mount } from "./app.js";

mount("confirm", (form) => {
  form.addEventListener("submit", (event) => {
    if (form.dataset.confirmed) return;
    event.preventDefault();
    const onYes = () => {
      form.dataset.confirmed = "yes";
      if (!form.isConnected) {
        // htmx has replaced this part of the page meanwhile. The person still confirmed the request, so send it.
        form.hidden = true;
        document.body.append(form);
      }
      form.requestSubmit();
    };
    askConfirmation(form.dataset.confirm, form.dataset.verb, onYes, form.dataset.no);
  });
});

/** Opens a dialog. The first line of `question` is its title; `onYes()` is called if the person confirms. */
export function askConfirmation(question, verb, onYes, keepLabel = "Keep it") {
  const dialog = document.createElement("dialog");
  dialog.className = "th-dialog";
  const [title, ...rest] = question.split("\n");
  const heading = Object.assign(document.createElement("h2"), { textContent: title, id: "question" });
  dialog.setAttribute("aria-labelledby", heading.id);
  const text = Object.assign(document.createElement("p"), { textContent: rest.join(" ") });
  const footer = document.createElement("footer");
  const cancelButton = Object.assign(document.createElement("button"), {
    className: "th-button",
    textContent: keepLabel,
    type: "button",
  });
  const confirmButton = Object.assign(document.createElement("button"), {
    className: "th-button th-danger",
    textContent: verb,
    type: "button",
  });
  cancelButton.addEventListener("click", () => dialog.close());
  confirmButton.addEventListener("click", () => {
    dialog.close();
    onYes();
  });
  dialog.addEventListener("close", () => dialog.remove());
  footer.append(cancelButton, confirmButton);
  dialog.append(heading, text, footer);
  document.body.append(dialog);
  dialog.showModal();
}
