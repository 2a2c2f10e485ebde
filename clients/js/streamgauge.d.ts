/** A row's term in N-Triples, or `null` where a variable is unbound. */
export type Term = string | null;

/** An answer of the query service: rows added and removed at an instant (ms), over a scope of time. */
export interface Answer {
  vars: string[];
  add?: Term[][];
  remove?: Term[][];
  instant?: number;
  scope?: [number, number];
}

/** SPARQL query results in JSON. */
export interface Results {
  head: { vars: string[] };
  results: { bindings: Record<string, { type: string; value: string; datatype?: string; "xml:lang"?: string }>[] };
}

/** A notification of the broker: how the answer of a channel has changed. */
export interface Notification {
  channel: string;
  number: number;
  key: string;
  publications: number[];
  at: number;
  added: Results;
  removed: Results;
  boolean?: boolean;
}

export interface QueryStatus {
  id: string;
  state: "running" | "ended" | "failed";
  fault: string;
  query: string;
  engine: string;
  semantics: string;
  streams: string[];
  output: string | null;
  elements: number;
  late: number;
  waiting: number;
  answers: number;
  subscribers: number;
  memory: number;
}

export interface StreamStatus {
  stream: string;
  elements: number;
  read_by: string[];
  written_by: string | null;
  source?: string;
  [field: string]: unknown;
}

export interface RegistrationOptions {
  dialect?: "rspql" | "csparql" | "cqels" | "sparqlstream";
  semantics?: string | Record<string, unknown>;
  engine?: string;
  /** Turtle. */
  static?: string;
  /** ms. */
  lateness?: number;
  /** ms. */
  t0?: number;
  advance?: "wall";
}

export interface PublishOptions {
  /** The media type, Turtle unless given. */
  type?: string;
  /** The time of all elements in ms, or `now`. */
  time?: number | "now";
  /** The name of a message format. */
  form?: string;
  /** Sent again with the same key, nothing is done twice. */
  key?: string;
}

export interface SubscriptionOptions {
  /** The place of the last answer that was taken; 0 for all that are kept, new ones only without. */
  after?: string | number;
  transport?: "events" | "websocket";
  /** Ends the subscription. */
  signal?: AbortSignal;
  /** Hears how many answers the server no longer had; null where it began anew, so that nobody knows. */
  missed?: (count: number | null) => void;
  state?: (state: "connected" | "away", error?: Error) => void;
  /** How long (ms) the server may be away before the subscription fails; 10 minutes. */
  patience?: number;
}

export interface Numbered<Data> {
  number: number;
  /** Goes on by `after: place`, in another process too. */
  place: string;
  data: Data;
}

export class StreamgaugeError extends Error {
  constructor(message: string, status?: number, about?: { transient?: boolean; after?: number });
  /** The status of HTTP, 0 where there is none. */
  readonly status: number;
  readonly transient: boolean;
  readonly after: number;
}

export interface ClientOptions {
  token?: string;
  fetch?: typeof globalThis.fetch;
  WebSocket?: typeof globalThis.WebSocket;
}

export class Client {
  constructor(url: string, options?: ClientOptions);
  register(query: string, options?: RegistrationOptions): Promise<QueryStatus>;
  queries(): Promise<QueryStatus[]>;
  query(id: string): Promise<QueryStatus>;
  deregister(id: string): Promise<Response>;
  streams(): Promise<StreamStatus[]>;
  publish(stream: string, elements: string | Blob | ArrayBuffer, options?: PublishOptions): Promise<{ items: number; queries: number }>;
  answers(id: string, options?: SubscriptionOptions): AsyncGenerator<Numbered<Answer>, void, undefined>;
  createChannel(name: string, query: string): Promise<Record<string, unknown>>;
  deleteChannel(name: string): Promise<Response>;
  rows(name: string): Promise<Results>;
  add(graph: string, options?: Pick<PublishOptions, "type" | "key">): Promise<{ publication: number; repeated: boolean }>;
  remove(graph: string, options?: Pick<PublishOptions, "type" | "key">): Promise<{ publication: number; repeated: boolean }>;
  notifications(name: string, options?: SubscriptionOptions & { subscriber?: string }): AsyncGenerator<Numbered<Notification>, void, undefined>;
}

export interface ServerEvent {
  event: string;
  data: string;
  id?: string;
}

export function parsed(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void, undefined>;
