/** Captures a stream while the caller reads it, in any way. */

/** Limit of a captured body. Answers in text are far smaller; the rest is passed on without being captured. */
const MAX_KEPT_BYTES = 16 * 2 ** 20;

/**
 * The same response, whose body calls `ended` once with the text that was read when it ends, breaks or is cancelled.
 *
 * A body that is never read is never captured.
 */
export function tapped(response: Response, ended: (text: string) => void): Response {
  if (!response.body) return response;
  const chunks: Uint8Array[] = [];
  let keptBytes = 0;
  const keep = (chunk: Uint8Array) => {
    if (keptBytes < MAX_KEPT_BYTES) chunks.push(chunk);
    keptBytes += chunk.byteLength;
  };
  const body = tappedStream(response.body, keep, () => ended(textOf(chunks)));
  const { status, statusText, headers, url } = response;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url });
}

/**
 * The same stream; `keep` gets each part before it is passed on, and `ended` is called once when the stream ends, breaks
 * or is cancelled. It is read when the caller reads it, and cancelled when the caller cancels it.
 */
export function tappedStream<Part>(
  stream: ReadableStream<Part>,
  keep: (part: Part) => void,
  ended: () => void,
): ReadableStream<Part> {
  const reader = stream.getReader();
  let hasEnded = false;
  const end = () => {
    if (!hasEnded) ended();
    hasEnded = true;
  };
  return new ReadableStream<Part>(
    {
      async pull(controller) {
        try {
          const part = await reader.read();
          if (part.done) {
            end();
            controller.close();
            return;
          }
          keep(part.value);
          controller.enqueue(part.value);
        } catch (error) {
          end();
          controller.error(error);
        }
      },
      async cancel(reason) {
        end();
        await reader.cancel(reason);
      },
    },
    // Nothing is read ahead of the caller.
    { highWaterMark: 0 },
  );
}

function textOf(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
}
