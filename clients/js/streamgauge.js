/**
 * A client of Streamgauge's query service (`engine serve`) and broker (`broker serve`), for browsers and Node.
 *
 * Answers come by server-sent events, read from `fetch` so that the token stays in a header, or by WebSocket. Whatever
 * breaks, a subscription goes on after the last number that it gave: each answer comes once and in order, and what the
 * server let go meanwhile is counted (`missed`; `null` where it began anew, and nobody knows).
 */

const FIRST_MS = 250, LONGEST_MS = 10_000;
/** Silence after which a connection counts as lost: servers send a sign of life every 15 s. */
const SILENCE_MS = 45_000;
/** Statuses after which the same request may succeed later. */
const TRANSIENT = new Set([408, 425, 429, 500, 502, 503, 504]);
const CLOSED_WELL = 1000, CLOSED_BY_FAILURE = 1011, CLOSED_REFUSED = 1008;

/** A refusal of the server, or a subscription that has failed; `status` is that of HTTP, 0 where there is none. */
export class StreamgaugeError extends Error {
  constructor(message, status = 0, { transient = false, after = 0 } = {}) {
    super(message);
    this.name = "StreamgaugeError";
    this.status = status;
    /** Whether the same request may succeed later, and when it is worth trying (ms). */
    this.transient = transient;
    this.after = after;
  }
}

export class Client {
  #url; #token; #fetch; #WebSocket;

  constructor(url, { token, fetch, WebSocket } = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = fetch ?? ((...request) => globalThis.fetch(...request));
    this.#WebSocket = WebSocket ?? globalThis.WebSocket;
  }

  // The query service

  register(query, options = {}) { return this.#json("POST", "/queries", { query, ...options }); }
  async queries() { return (await this.#json("GET", "/queries")).queries; }
  query(id) { return this.#json("GET", `/queries/${encodeURIComponent(id)}`); }
  deregister(id) { return this.#request("DELETE", `/queries/${encodeURIComponent(id)}`); }
  async streams() { return (await this.#json("GET", "/streams")).streams; }

  publish(stream, elements, { type = "text/turtle", time, form, key } = {}) {
    return this.#send(`/streams/${encodeURIComponent(stream)}`, elements, type, { t: time, form }, key);
  }

  /** Answers of a query, each `{number, data}`; ends when the query is deregistered or has ended. */
  answers(id, options = {}) {
    const path = `/queries/${encodeURIComponent(id)}`;
    const unwrap = ({ id, run, answer }) => ({ number: id, place: run ? `${run}.${id}` : `${id}`, data: answer });
    return this.#subscription(`${path}/answers`, path, unwrap, options);
  }

  // The broker

  createChannel(name, query) {
    return this.#send(this.#channel(name), query, "application/sparql-query", {}, undefined, "PUT");
  }
  deleteChannel(name) { return this.#request("DELETE", this.#channel(name)); }
  rows(name) { return this.#json("GET", `${this.#channel(name)}/rows`); }
  add(graph, { type = "text/turtle", key } = {}) { return this.#send("/publish", graph, type, {}, key); }
  remove(graph, { type = "text/turtle", key } = {}) { return this.#send("/delete", graph, type, {}, key); }

  /** Notifications of a channel, each `{number, data}`; by the name of a `subscriber` the broker keeps them. */
  notifications(name, { subscriber, ...options } = {}) {
    const path = this.#channel(name), unwrap = message => ({ number: message.number, place: `${message.number}`, data: message });
    return this.#subscription(`${path}/notifications`, path, unwrap, options, { subscriber });
  }

  #channel(name) { return `/channels/${encodeURIComponent(name)}`; }

  // Requests

  async #request(method, path, { body, headers = {}, signal } = {}) {
    if (this.#token) headers = { ...headers, Authorization: `Bearer ${this.#token}` };
    const response = await this.#fetch(this.#url + path, { method, body, headers, signal });
    if (response.ok) return response;
    const text = await response.text();
    let sentence = text;
    try { sentence = JSON.parse(text).error ?? text; } catch { /* a proxy's page */ }
    const after = 1000 * (Number(response.headers.get("Retry-After")) || 0);
    throw new StreamgaugeError(sentence || `status ${response.status}`, response.status,
      { transient: TRANSIENT.has(response.status), after });
  }

  async #json(method, path, body) {
    const sent = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    return (await this.#request(method, path, sent)).json();
  }

  async #send(path, body, type, parameters, key, method = "POST") {
    const headers = { "Content-Type": type, ...(key && { "Idempotency-Key": key }) };
    return (await this.#request(method, path + query(parameters), { body, headers })).json();
  }

  // Subscriptions

  async *#subscription(path, about, unwrap, options, parameters = {}) {
    const { after, transport = "events", signal, missed = () => {}, state = () => {}, patience = 600_000 } = options;
    const connect = transport === "websocket" ? this.#messages : this.#events;
    let last = after, delay = FIRST_MS, alive = Date.now(), opened = false;
    while (!signal?.aborted) {
      let trouble;
      try {
        for await (const message of connect.call(this, path, { ...parameters, after: last }, signal, unwrap)) {
          [delay, alive] = [FIRST_MS, Date.now()];
          if (message.open) [opened] = [true, state("connected")];
          else if (message.missed !== undefined) missed(message.missed);
          else {
            last = message.place;
            yield message;
          }
        }
        trouble = new StreamgaugeError("the connection was lost", 0, { transient: true });
        if (await this.#isOver(about, opened)) return;
      } catch (error) {
        if (signal?.aborted) return;
        const passing = error instanceof StreamgaugeError ? error.transient : error instanceof TypeError;
        if (!passing || Date.now() - alive > patience) throw error;
        trouble = error;
        // a browser does not say why a WebSocket was refused: a request does
        if (transport === "websocket" && await this.#isOver(about, opened)) return;
      }
      state("away", trouble);
      await sleep(Math.max(trouble.after ?? 0, delay * (0.5 + Math.random() / 2)), signal);
      delay = Math.min(2 * delay, LONGEST_MS);
    }
  }

  /** Whether what is subscribed to is gone or has ended; StreamgaugeError where it has failed. */
  async #isOver(about, opened) {
    try {
      const { state, fault } = await this.#json("GET", about);
      if (state === "failed") throw new StreamgaugeError(fault);
      return state === "ended";
    } catch (error) {
      if (error.status === 404 && opened) return true;
      if (error instanceof StreamgaugeError && !error.transient) throw error;
      return false;
    }
  }

  async *#events(path, parameters, signal) {
    const silence = new AbortController(), stop = () => silence.abort();
    signal?.addEventListener("abort", stop, { once: true });
    let timer = setTimeout(stop, SILENCE_MS);
    try {
      const headers = { Accept: "text/event-stream" };
      const response = await this.#request("GET", path + query(parameters), { headers, signal: silence.signal });
      yield { open: true };
      for await (const { event, data, id } of parsed(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(stop, SILENCE_MS);
        if (event === "missed") yield { missed: JSON.parse(data).missed };
        else if (event === "failed") throw new StreamgaugeError(JSON.parse(data).failed);
        else if (event === "over") return;
        else if (event === "message") {
          yield { number: Number(id.split(".").pop()), place: id, data: JSON.parse(data) };
        }
      }
    } catch (error) {
      if (error.name !== "AbortError" || signal?.aborted) throw error;
      throw new StreamgaugeError(`nothing came for ${SILENCE_MS} ms`, 0, { transient: true });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      silence.abort();
    }
  }

  async *#messages(path, parameters, signal, unwrap) {
    if (!this.#WebSocket) throw new StreamgaugeError("no WebSocket here: use Node 22, or give the option WebSocket");
    const address = this.#url.replace(/^http/, "ws") + path + query({ ...parameters, access_token: this.#token });
    const socket = new this.#WebSocket(address), waiting = [];
    let wake = () => {}, closed;
    const put = item => { waiting.push(item); wake(); };
    socket.onopen = () => put({ open: true });
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      put(Object.keys(message).join() === "missed" ? message : unwrap(message));
    };
    socket.onerror = () => { closed ??= { code: 1006, reason: "" }; wake(); };
    socket.onclose = ({ code, reason }) => { closed = { code, reason }; wake(); };
    const stop = () => socket.close();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        while (waiting.length) yield waiting.shift();
        if (closed) break;
        await new Promise(resolve => { wake = resolve; });
      }
    } finally {
      signal?.removeEventListener("abort", stop);
      socket.close();
    }
    if (closed.code === CLOSED_BY_FAILURE || closed.code === CLOSED_REFUSED) throw new StreamgaugeError(closed.reason);
    if (closed.code !== CLOSED_WELL) {
      throw new StreamgaugeError(closed.reason || `the connection was lost (${closed.code})`, 0, { transient: true });
    }
  }
}

function query(parameters) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

function sleep(ms, signal) {
  return new Promise(resolve => {
    const timer = setTimeout(done, ms);
    function done() { clearTimeout(timer); signal?.removeEventListener("abort", done); resolve(); }
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** The events of a body (HTML standard, 9.2); a comment is an event `comment`, as it shows that the server lives. */
export async function* parsed(body) {
  const reader = body.getReader(), decoder = new TextDecoder();
  let rest = "", data = [], event = "message", id;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        const [, field, text] = /^([^:]*):? ?(.*)$/s.exec(line);
        if (line === "") {
          if (data.length) yield { event, data: data.join("\n"), id };
          [data, event] = [[], "message"];
        } else if (field === "") yield { event: "comment", data: text, id };
        else if (field === "data") data.push(text);
        else if (field === "event") event = text;
        else if (field === "id") id = text;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
