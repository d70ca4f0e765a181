// Loaded before the first paint (not a module), so that no page flashes in the wrong theme.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("trainhub.theme");
    } catch {
      return null; // storage is denied: follow the system
    }
  };
  const apply = () => {
    const theme = chosen() ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.bsTheme = theme;
    document.documentElement.dataset.themeChoice = chosen() ?? "system";
  };
  apply();
  dark.addEventListener("change", apply);
  addEventListener("storage", apply);
  addEventListener("trainhub:theme", apply);
})();
