/** An HTTP server on loopback that answers what a test queues, and keeps what it was sent. */

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The raw body. */
  text: string;
  /** Its JSON, of any shape. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** A string is sent as it is, anything else as JSON. */
  body?: unknown;
  /** Parts of the body, sent one after the other, instead of `body`. */
  parts?: AsyncIterable<string> | Iterable<string>;
  /** Cuts the connection: before the answer, or at the end of what is sent. */
  hangsUp?: "before" | "after";
  /** Never answers. */
  isSilent?: boolean;
}

export class ScriptedServer {
  readonly requests: ReceivedRequest[] = [];
  readonly replies: Reply[] = [];
  /** Resolves when a client leaves before the end of an answer. */
  readonly left: Promise<void>;
  #resolveLeft: () => void = () => undefined;
  readonly #server: Server;

  /** @param decide The reply where none is queued. */
  constructor(private readonly decide: (request: ReceivedRequest) => Reply = () => ({ status: 418, body: {} })) {
    this.left = new Promise((resolved) => {
      this.#resolveLeft = resolved;
    });
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** @param port 0 for a free one. */
  async start(port = 0): Promise<this> {
    await new Promise<void>((resolved) => this.#server.listen(port, "127.0.0.1", resolved));
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolved) => this.#server.close(resolved));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.once("close", () => response.writableFinished || this.#resolveLeft());
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { method = "", url = "", headers } = request;
    const received = { method, path: url, headers, text, body: text.startsWith("{") ? JSON.parse(text) : undefined };
    this.requests.push(received);
    const reply = this.replies.shift() ?? this.decide(received);
    if (reply.isSilent) return;
    if (reply.hangsUp === "before") return void request.socket.destroy();
    const content = typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body ?? {});
    response.writeHead(reply.status ?? 200, { "Content-Type": "application/json", ...reply.headers });
    for await (const part of reply.parts ?? [content]) {
      // A cut that follows must not overtake it.
      if (!response.destroyed) await new Promise((resolved) => response.write(part, resolved));
    }
    if (reply.hangsUp) request.socket.destroy();
    else response.end();
  }
}
