// The phases of a run as bands on the time axis.

import { hubNow } from "./range.js";

const OPEN_S = 86_400;
const TONES = { Preparing: "preparing", Running: "running", Finalizing: "finalizing" };

/** Returns the phases of a run as bands. The last phase of a run that is still running has no end yet. */
export function phaseBands(phases, isOpen) {
  return phases.map(({ name, from, to }, index) => {
    const end = to === null || (isOpen && index === phases.length - 1) ? hubNow() + OPEN_S : to;
    return { from, to: end, label: name, tone: TONES[name] ?? "waiting" };
  });
}
