import type { Transport } from "./transport.js";

/** A group of operations; each is an attribute of the client. */
export class Group {
  constructor(protected readonly transport: Transport) {}
}
