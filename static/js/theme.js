// Loaded before the first paint (not a module), so that no page flashes in the wrong theme.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const storedChoice = () => {
    try {
      return localStorage.getItem("trainhub.theme");
    } catch {
      return null; // the browser denies storage: follow the system
    }
  };
  const apply = () => {
    const theme = storedChoice() ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.bsTheme = theme;
    document.documentElement.dataset.themeChoice = storedChoice() ?? "system";
  };
  apply();
  dark.addEventListener("change", apply);
  addEventListener("storage", apply);
  addEventListener("trainhub:theme", apply);
})();
