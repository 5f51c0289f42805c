/**
 * The wire formats of model calls, and how each is recognised.
 *
 * Nothing here sends anything, changes its arguments or throws on unreadable values. A message reads the same in its
 * answer and in the later requests that contain it, except for `model` and `incomplete`.
 */

import { anthropicMessages } from "./anthropic-messages.js";
import { openaiChat } from "./openai-chat.js";
import { openaiResponses } from "./openai-responses.js";
import type { Fields } from "./shapes.js";
import type { Turn } from "./turns.js";

export interface Wire {
  /** All turns of a request, in order, without system messages. */
  turns(body: Fields): Turn[];

  /** A new body with the context in it; "" omits a part. Equal parts are placed identically. */
  placed(body: Fields, stable: string, tail: string): Fields;

  /** The turns of an unstreamed answer. */
  answer(payload: Fields): Turn[];

  /** The turns of a streamed answer; those of an interrupted stream are `incomplete`. */
  streamed(events: readonly Fields[]): Turn[];
}

/** The wire of a call; undefined if it is no conversation with a model, or of unknown shape. */
export function wireOf(url: string, body: Fields): Wire | undefined {
  const path = url.split("?", 1)[0]?.replace(/\/+$/, "") ?? "";
  if (path.endsWith("/chat/completions")) return Array.isArray(body["messages"]) ? openaiChat : undefined;
  if (path.endsWith("/v1/messages")) return Array.isArray(body["messages"]) ? anthropicMessages : undefined;
  if (!path.endsWith("/responses")) return undefined;
  const given = body["input"] ?? "";
  return typeof given === "string" || Array.isArray(given) ? openaiResponses : undefined;
}
