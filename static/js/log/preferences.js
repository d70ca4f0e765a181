// Preferences of the reader in this browser's storage, and the place in a log that the page's address names.

export function readPreference(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // the browser denies storage: use the defaults
  }
}

export function writePreference(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The browser denies storage: the preference lasts as long as the page.
  }
}

/** Returns the offset that `#b=1234` in the page's address names, or null. */
export function byteFromHash() {
  const match = /^#b=(\d+)$/.exec(location.hash);
  return match ? Number(match[1]) : null;
}
