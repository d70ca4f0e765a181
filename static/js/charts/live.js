// Live samples of some nodes, while the page is looked at: the hub asks nodes for them only while somebody listens.

import { topicSocket } from "../socket.js";

/**
 * Calls `onSamples(message)` for every telemetry message and `onGap()` whenever some may have been missed: then what history
 * holds must be fetched again. Silent while the page is hidden. Returns a function that stops it.
 */
export function follow(nodes, onSamples, onGap) {
  const path = `/ws/telemetry/?nodes=${nodes.map(encodeURIComponent).join(",")}`;
  let stop = null;
  let wasOpen = false;
  const start = () => {
    stop ??= topicSocket(path, heard, () => {
      if (wasOpen) onGap();
      wasOpen = true;
    });
  };
  const heard = (message) => {
    if (message.type === "telemetry.sampled") onSamples(message);
    else if (message.type === "hint") onGap();
  };
  const end = () => {
    stop?.();
    stop = null;
  };
  const look = () => (document.hidden ? end() : start());
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    document.removeEventListener("visibilitychange", look);
    end();
  };
}
