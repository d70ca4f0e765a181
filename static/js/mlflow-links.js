// MLflow's client prints the addresses of its own server's pages ("View run … at: HUB/#/experiments/1/runs/ID"). This
// redirects them to the pages of the hub.

const PAGES = [
  [/^#\/experiments\/\d+\/runs\/([0-9a-f]{32})/, ([, run]) => `/runs/id/${run}/`],
  [/^#\/models\/([^/?]+)\/versions\/(\d+)/, ([, model, version]) => `/models/${model}/versions/${version}/`],
  [/^#\/models\/([^/?]+)/, ([, model]) => `/models/${model}/`],
];

function redirect() {
  for (const [address, page] of PAGES) {
    const match = address.exec(location.hash);
    if (match) return location.replace(page(match));
  }
}

if (location.pathname === "/") {
  redirect();
  // Pasted into a tab that shows the dashboard already, such an address loads nothing.
  addEventListener("hashchange", redirect);
}
