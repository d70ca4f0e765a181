// What the reader has set, kept in this browser where that is allowed; and the place in a log that the address names.

export function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage is denied: nothing is remembered
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // as above
  }
}

/** `#b=1234`: the byte of the log to begin at, or null. */
export function byteOfHash() {
  const found = /^#b=(\d+)$/.exec(location.hash);
  return found ? Number(found[1]) : null;
}
