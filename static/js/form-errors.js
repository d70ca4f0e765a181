// The errors of a form: the first one gets the focus when the page opens, and the key `e` moves on to the next.
const ERRORS = ".th-error, .wz-problem[role=alert], form > .th-note[role=alert]";
const FIELDS = "input:not([type=hidden]), select, textarea";

/** Returns what a person changes to mend the error: its field, or the text itself if it concerns no single field. */
function placeOf(error) {
  const place = error.closest(".th-field") ?? error.closest("[id^=finding-]")?.parentElement;
  // Of a form that is wrong as a whole, the field that the server chose, for example the password of a sign-in.
  return place?.querySelector(FIELDS) ?? error.closest("form")?.querySelector("[autofocus]") ?? error;
}

function focusError(error) {
  const place = placeOf(error);
  if (place === error) error.tabIndex = -1;
  place.focus();
}

function focusNextError() {
  const errors = [...document.querySelectorAll(ERRORS)].filter((error) => error.offsetParent);
  const at = errors.findIndex((error) => placeOf(error) === document.activeElement);
  if (errors.length) focusError(errors[(at + 1) % errors.length]);
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "e" || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]")) return;
  const isTyping = event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select");
  if (isTyping && !event.altKey) return;
  event.preventDefault();
  focusNextError();
});

// The link beside an error on another page names the field in the address.
const named = location.hash.startsWith("#finding-") && document.getElementById(location.hash.slice(1));
const first = document.querySelector(ERRORS);
if (named) {
  // A browser takes the focus away while it scrolls to what the address names, until the page has loaded.
  addEventListener("load", () => setTimeout(() => focusError(named.querySelector(ERRORS) ?? named)));
} else if (first) {
  focusError(first);
}
