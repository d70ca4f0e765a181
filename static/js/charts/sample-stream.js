// Live telemetry samples of nodes, while the page is visible: nodes send them only while somebody listens.

import { topicSocket } from "../socket.js";

/**
 * Calls `onSamples(message)` for every telemetry message, and `onGap()` whenever some may have been missed, so that the
 * history must be fetched again. Pauses while the page is hidden. Returns a function that ends it.
 */
export function streamSamples(nodes, onSamples, onGap) {
  const path = `/ws/telemetry/?nodes=${nodes.map(encodeURIComponent).join(",")}`;
  let stop = null;
  let wasOpen = false;
  const start = () => {
    stop ??= topicSocket(path, handleMessage, () => {
      if (wasOpen) onGap();
      wasOpen = true;
    });
  };
  const handleMessage = (message) => {
    if (message.type === "telemetry.sampled") onSamples(message);
    else if (message.type === "hint") onGap();
  };
  const stopSocket = () => {
    stop?.();
    stop = null;
  };
  const update = () => (document.hidden ? stopSocket() : start());
  document.addEventListener("visibilitychange", update);
  update();
  return () => {
    document.removeEventListener("visibilitychange", update);
    stopSocket();
  };
}
