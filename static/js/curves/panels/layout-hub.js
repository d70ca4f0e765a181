// Changes the layout of an experiment's panels on the hub.

/** Thrown with the hub's sentence. `status`: of its answer; 409 if somebody else has changed the panels meanwhile. */
export class LayoutRefused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Stores the panels and returns the layout, {panels, revision}. Throws LayoutRefused. */
export async function saveLayout(address, panels, revision) {
  return (await send("PUT", address, { panels, revision })).json();
}

/** Removes all panels. Throws LayoutRefused. */
export async function deleteLayout(address) {
  await send("DELETE", address);
}

async function send(method, address, body) {
  // The frame of the page has the token for htmx.
  const headers = { ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}"), Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(address, { method, headers, body: body && JSON.stringify(body) }).catch(() => null);
  if (response?.ok) return response;
  const problem = (await response?.json().catch(() => null)) ?? {};
  const what = response ? `The hub answered ${response.status}.` : "The hub cannot be reached.";
  throw new LayoutRefused(problem.detail ?? `${what} Your change is not saved; try again.`, response?.status ?? 0);
}
