/**
 * The client of Souvenir, a memory service for agents.
 *
 *     Souvenir                     the HTTP API
 *     withMemory, flush            memory for the calls of OpenAI's and Anthropic's SDKs
 *     souvenir-client/ai           tools and a middleware for Vercel's AI SDK
 */

export type { SouvenirOptions } from "./address.js";
export type { CallOptions, Input, Listing, Output, StreamEvent } from "./calls.js";
export { Souvenir } from "./client.js";
export * from "./errors.js";
export type { components, operations, paths } from "./generated/api.js";
export type { FlushResult } from "./memory/capture.js";
export type { MemoryOptions } from "./memory/model-call.js";
export { flush, withMemory, type VendorClient } from "./memory/with-memory.js";
