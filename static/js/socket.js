// One reconnecting WebSocket per topic path, shared by all listeners on the page.

const FIRST_WAIT_MS = 400;
const MAX_WAIT_MS = 20_000;
const SHOW_LOST_AFTER_MS = 2_500;
// The code with which the server closes a socket whose person may not watch any more (live/consumers.py).
const NOT_ALLOWED = 4403;
const topics = new Map();

/**
 * Listens to a topic. `onMessage(message)` gets every JSON message. `onOpen()` is called each time the socket opens, at
 * first and after every loss: fetch then what may have been missed. Returns a function that stops listening.
 */
export function topicSocket(path, onMessage, onOpen = () => {}) {
  const topic = topics.get(path) ?? new Topic(path);
  topics.set(path, topic);
  const listener = { onMessage, onOpen };
  topic.listeners.add(listener);
  if (topic.isOpen) queueMicrotask(() => topic.listeners.has(listener) && onOpen());
  return () => {
    topic.listeners.delete(listener);
    if (topic.listeners.size === 0) {
      topics.delete(path);
      topic.close();
    }
  };
}

class Topic {
  constructor(path) {
    this.path = path;
    this.listeners = new Set();
    this.wait = FIRST_WAIT_MS;
    this.closed = false;
    this.connect();
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    clearTimeout(this.timer);
    const address = new URL(this.path, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    this.socket = new WebSocket(address);
    this.socket.onopen = () => this.handleOpen();
    this.socket.onmessage = (event) => this.deliver(JSON.parse(event.data));
    this.socket.onclose = (event) => this.handleClose(event.code);
  }

  handleOpen() {
    this.wait = FIRST_WAIT_MS;
    this.lostAt = null;
    showConnection();
    for (const listener of [...this.listeners]) listener.onOpen();
  }

  deliver(message) {
    for (const listener of [...this.listeners]) listener.onMessage(message);
  }

  handleClose(code) {
    if (this.closed) return;
    // The person was signed out or left the workspace: what the page shows is not theirs to see any more.
    if (code === NOT_ALLOWED) {
      location.reload();
      return;
    }
    this.lostAt ??= Date.now();
    setTimeout(showConnection, SHOW_LOST_AFTER_MS + 50);
    this.timer = setTimeout(() => this.connect(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 1.8, MAX_WAIT_MS);
  }

  reconnectNow() {
    if (this.socket.readyState !== WebSocket.CLOSED) return;
    this.wait = FIRST_WAIT_MS;
    this.connect();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket.close();
    showConnection();
  }
}

function showConnection() {
  const isLost = [...topics.values()].some((topic) => topic.lostAt && Date.now() - topic.lostAt > SHOW_LOST_AFTER_MS);
  document.documentElement.dataset.live = isLost ? "lost" : "on";
}

const reconnectAll = () => topics.forEach((topic) => topic.reconnectNow());
addEventListener("online", reconnectAll);
document.addEventListener("visibilitychange", () => document.hidden || reconnectAll());
