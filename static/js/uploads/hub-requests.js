// The requests of an upload to the hub.

/** Thrown with a sentence. `status`: of the hub's answer, 0 if there was none. */
export class RequestFailed extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may succeed later. */
  get mayPass() {
    return this.status === 0 || this.status === 401 || this.status === 429 || this.status >= 500;
  }
}

/** Of the dataset at `address`, such as /api/v1/datasets/birds/. `headers`: those with which this page may write. */
export class HubRequests {
  constructor(address, headers) {
    this.address = address;
    this.headers = headers;
  }

  /** Begins the upload of a version, or goes on with it. */
  async begin() {
    const { version } = await this.#post("uploads/", {});
    this.upload = `versions/${version}/upload/`;
    return version;
  }

  /** Returns which of the files are `missing`, and which are `refused`. */
  compare(files) {
    return this.#post(`${this.upload}files/`, { files });
  }

  finish(count) {
    return this.#post(`${this.upload}finish/`, { files: count });
  }

  /** Sends the bytes from `start` to `end` of a file. */
  async put(file, start, end, signal) {
    const path = file.path.split("/").map(encodeURIComponent).join("/");
    const query = new URLSearchParams({ modified_at: file.modified_at, size: file.size });
    const isWhole = start === 0 && end === file.size;
    const span = isWhole ? {} : { "Content-Range": `bytes ${start}-${end - 1}/${file.size}` };
    const headers = { ...this.headers, ...span, "Content-Type": "application/octet-stream" };
    // Read first: what fails after this is the connection, and not the file.
    const body = await file.file.slice(start, end).arrayBuffer();
    await this.#request("PUT", `${this.upload}files/${path}?${query}`, { headers, body, signal });
  }

  async #post(address, body) {
    const headers = { ...this.headers, "Content-Type": "application/json", Accept: "application/json" };
    return (await this.#request("POST", address, { headers, body: JSON.stringify(body) })).json();
  }

  async #request(method, address, options) {
    let answer;
    try {
      answer = await fetch(`${this.address}${address}`, { method, cache: "no-store", ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new RequestFailed("The hub cannot be reached.", 0);
    }
    if (answer.ok) return answer;
    if (answer.status === 401) throw new RequestFailed("You are signed out: sign in again in another tab.", 401);
    const problem = await answer.json().catch(() => ({}));
    throw new RequestFailed(sentence(problem, answer.status), answer.status);
  }
}

function sentence(problem, status) {
  const message = problem.errors?.[0]?.message;
  if (message) return `${message[0].toUpperCase()}${message.slice(1)}.`;
  return problem.detail ?? `The hub answered ${status}.`;
}
