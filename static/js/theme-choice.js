// The theme in the settings. It is a choice of this browser, so no form sends it.
import { mount } from "./app.js";

mount("theme-choice", (select) => {
  const show = () => (select.value = document.documentElement.dataset.themeChoice);
  select.addEventListener("change", () => {
    if (select.value === "system") localStorage.removeItem("trainhub.theme");
    else localStorage.setItem("trainhub.theme", select.value);
    dispatchEvent(new Event("trainhub:theme"));
  });
  addEventListener("trainhub:theme", show);
  show();
  return () => removeEventListener("trainhub:theme", show);
});
