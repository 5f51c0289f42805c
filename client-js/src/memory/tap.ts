/** Captures the body of a response while the caller reads it, in any way. */

/** Limit of a captured body. Answers in text are far smaller; the rest is passed on without being captured. */
const MAX_KEPT_BYTES = 16 * 2 ** 20;

/**
 * The same response, whose body calls `ended` once with the text that was read when it ends, breaks or is cancelled.
 *
 * The body is read when the caller reads it, and cancelled when the caller cancels it. A body that is never read is never
 * captured.
 */
export function tapped(response: Response, ended: (text: string) => void): Response {
  const reader = response.body?.getReader();
  if (!reader) return response;
  const chunks: Uint8Array[] = [];
  let keptBytes = 0;
  let hasEnded = false;
  const end = () => {
    if (!hasEnded) ended(textOf(chunks));
    hasEnded = true;
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const part = await reader.read();
          if (part.done) {
            end();
            controller.close();
            return;
          }
          if (keptBytes < MAX_KEPT_BYTES) chunks.push(part.value);
          keptBytes += part.value.byteLength;
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
  const { status, statusText, headers, url } = response;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url });
}

function textOf(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
}
