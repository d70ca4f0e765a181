// MLflow's client prints the addresses of its own server's pages ("View run … at: HUB/#/experiments/1/runs/ID"). This
// redirects them to the pages of the hub.

const PAGES = [
  [/^#\/experiments\/\d+\/runs\/([0-9a-f]{32})/, ([, run]) => `/runs/id/${run}/`],
  [/^#\/models\/([^/?]+)\/versions\/(\d+)/, ([, model, version]) => `/models/${model}/versions/${version}/`],
  [/^#\/models\/([^/?]+)/, ([, model]) => `/models/${model}/`],
];

/** Returns the address of the hub's page that the fragment of this page's address stands for, or undefined. */
function pageOfFragment() {
  for (const [address, page] of PAGES) {
    const match = address.exec(location.hash);
    if (match) return page(match);
  }
}

function redirect() {
  const page = pageOfFragment();
  if (page) location.replace(page);
}

if (location.pathname === "/") {
  redirect();
  // Pasted into a tab that shows the dashboard already, such an address loads nothing.
  addEventListener("hashchange", redirect);
} else if (location.pathname === "/sign-in/") {
  // Browsers keep the fragment when the hub redirects somebody who is not signed in.
  const page = pageOfFragment();
  if (page) document.querySelector('form [name="next"]').value = page;
}
