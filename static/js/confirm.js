// A form with data-mount="confirm" asks before it is sent; `data-confirm` is the question, `data-verb` the button,
// `data-no` the one that leaves it.
import { mount } from "./app.js";

mount("confirm", (form) => {
  form.addEventListener("submit", (event) => {
    if (form.dataset.confirmed) return;
    event.preventDefault();
    const yes = () => {
      form.dataset.confirmed = "yes";
      if (!form.isConnected) {
        // The part of the page in which it stood has been fetched anew meanwhile: what was asked is still to be done.
        form.hidden = true;
        document.body.append(form);
      }
      form.requestSubmit();
    };
    ask(form.dataset.confirm, form.dataset.verb, yes, form.dataset.no);
  });
});

export function ask(question, verb, onYes, keep = "Keep it") {
  const dialog = document.createElement("dialog");
  dialog.className = "th-dialog";
  const [title, ...rest] = question.split("\n");
  const heading = Object.assign(document.createElement("h2"), { textContent: title });
  const text = Object.assign(document.createElement("p"), { textContent: rest.join(" ") });
  const footer = document.createElement("footer");
  const no = Object.assign(document.createElement("button"), { className: "th-button", textContent: keep, type: "button" });
  const yes = Object.assign(document.createElement("button"), { className: "th-button th-danger", textContent: verb, type: "button" });
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => {
    dialog.close();
    onYes();
  });
  dialog.addEventListener("close", () => dialog.remove());
  footer.append(no, yes);
  dialog.append(heading, text, footer);
  document.body.append(dialog);
  dialog.showModal();
}
