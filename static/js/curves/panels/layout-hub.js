// Stores the panels of an experiment on the hub.

/** Thrown with the hub's sentence. `status`: of its answer; 409 if somebody else has changed the panels meanwhile. */
export class LayoutRefused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Stores the panels and returns the layout, {panels, revision}. Throws LayoutRefused. */
export async function saveLayout(address, panels, revision) {
  const headers = {
    // The frame of the page has the token against forged requests for htmx.
    ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}"),
    Accept: "application/json",
    "Content-Type": "application/json",
  };
  const body = JSON.stringify({ panels, revision });
  const response = await fetch(address, { method: "PUT", headers, body }).catch(() => null);
  if (response?.ok) return response.json();
  const problem = (await response?.json().catch(() => null)) ?? {};
  const what = response ? `The hub answered ${response.status}.` : "The hub cannot be reached.";
  throw new LayoutRefused(problem.detail ?? `${what} Your change is not saved; try again.`, response?.status ?? 0);
}
