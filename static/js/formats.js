// Times, durations and sizes in the same form as jobs/templatetags/formats.py writes them.

export function formatDuration(seconds) {
  if (seconds > 0 && seconds < 1) return seconds >= 0.1 ? `${seconds.toFixed(1)} s` : "<0.1 s";
  const whole = Math.trunc(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function formatRelativeTime(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function formatDateTime(milliseconds) {
  return new Date(milliseconds).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function formatBytes(count) {
  if (count < 1024) return `${Math.trunc(count)} B`;
  for (const unit of ["KiB", "MiB", "GiB"]) {
    count /= 1024;
    if (count < 1024) return `${count.toFixed(count < 10 ? 1 : 0)} ${unit}`;
  }
  return `${(count / 1024).toFixed(1)} TiB`;
}
