/** Memory for Vercel's AI SDK, the package `ai`: a middleware for language models, and tools. */

export { souvenirMiddleware } from "./ai/middleware.js";
export { souvenirTools, type FoundMemory, type SearchAnswer, type SouvenirTools } from "./ai/tools.js";
export { flush, type FlushResult, type MemoryOptions } from "./index.js";
