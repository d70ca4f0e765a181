// MLflow's client prints addresses of its own server's pages ("View run … at: HUB/#/experiments/1/runs/ID"): they lead to ours.

const PAGES = [
  [/^#\/experiments\/\d+\/runs\/([0-9a-f]{32})/, ([, run]) => `/runs/id/${run}/`],
  [/^#\/models\/([^/?]+)\/versions\/(\d+)/, ([, model, version]) => `/models/${model}/versions/${version}/`],
  [/^#\/models\/([^/?]+)/, ([, model]) => `/models/${model}/`],
];

if (location.pathname === "/") {
  for (const [address, page] of PAGES) {
    const found = address.exec(location.hash);
    if (found) {
      location.replace(page(found));
      break;
    }
  }
}
