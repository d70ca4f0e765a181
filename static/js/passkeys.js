// Passkeys. A button with data-mount="passkey-get" or "passkey-create" asks the browser, writes its answer into the
// field `credential` of the form with the id `data-form`, and sends that form. The options stand as JSON in the element
// with the id `data-options`.
import { mount } from "./app.js";

const TOO_OLD = "This browser knows no passkeys. Update it, or use another way.";
const NOT_DONE = "The browser has stopped: no passkey was used. Try again.";

mount("passkey-get", (button) => listen(button, (options) => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  return navigator.credentials.get({ publicKey });
}));

mount("passkey-create", (button) => listen(button, (options) => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  return navigator.credentials.create({ publicKey });
}));

function listen(button, ask) {
  const form = document.getElementById(button.dataset.form);
  const error = form.querySelector("[data-passkey-error]");
  const show = (message) => {
    error.textContent = message;
    error.hidden = !message;
  };
  button.addEventListener("click", async () => {
    show("");
    if (!globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON) return show(TOO_OLD);
    // The name of a new passkey has to be there before the browser is asked. A code is not needed with a passkey.
    if (!form.reportValidity()) return;
    button.disabled = true;
    try {
      const options = JSON.parse(document.getElementById(button.dataset.options).textContent);
      const credential = await ask(options);
      form.elements.credential.value = JSON.stringify(credential.toJSON());
      form.submit();
    } catch (failure) {
      show(failure.name === "InvalidStateError" ? "This device has a passkey for you already." : NOT_DONE);
      button.disabled = false;
    }
  });
}
