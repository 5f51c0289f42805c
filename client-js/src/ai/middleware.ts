/** A middleware for language models of Vercel's AI SDK that gives their calls the memory of an agent. */

import type { LanguageModelMiddleware } from "ai";
import { Memory, type MemoryOptions, type ModelCall } from "../memory/model-call.js";
import { tappedStream } from "../memory/tap.js";
import { aiPrompt } from "../memory/wires/ai-prompt.js";
import type { Fields } from "../memory/wires/shapes.js";
import { remember } from "../memory/with-memory.js";

type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type Params = Parameters<WrapStream>[0]["params"];

/**
 * A middleware for `wrapLanguageModel`, or for all models of a provider with `wrapProvider`.
 *
 *     const model = wrapLanguageModel({ model: openai("..."), middleware: souvenirMiddleware({ agent: "my_agent" }) });
 *
 * It does for every provider what `withMemory` does for two SDKs, with the same options and guarantees; `flush` takes it.
 *
 * @throws TypeError If an option is invalid.
 */
export function souvenirMiddleware(options: MemoryOptions): LanguageModelMiddleware {
  const memory = new Memory(options);
  const middleware: LanguageModelMiddleware = {
    specificationVersion: "v3",

    async wrapGenerate({ doGenerate, params, model }) {
      const { call, changed } = await begin(memory, params);
      const answer = await (changed ? model.doGenerate(changed) : doGenerate());
      const name = answer.response?.modelId ?? model.modelId;
      call?.answeredValue({ content: answer.content, model: name });
      return answer;
    },

    async wrapStream({ doStream, params, model }) {
      const { call, changed } = await begin(memory, params);
      const answer = await (changed ? model.doStream(changed) : doStream());
      if (!call) return answer;
      call.began();
      const events: Fields[] = [{ type: "response-metadata", modelId: model.modelId }];
      const ended = () => call.answeredEvents(events);
      return { ...answer, stream: tappedStream(answer.stream, (part) => events.push(part as unknown as Fields), ended) };
    },
  };
  remember(middleware, memory);
  return middleware;
}

/** The call, and its parameters with context; undefined if they do not change. */
async function begin(memory: Memory, params: Params): Promise<{ call?: ModelCall; changed?: Params }> {
  const call = memory.begin(aiPrompt, { prompt: params.prompt });
  const placed = await call?.withContext(false, params.abortSignal);
  return { call, ...(placed ? { changed: { ...params, prompt: placed["prompt"] as Params["prompt"] } } : {}) };
}
