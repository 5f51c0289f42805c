/** One turn of a conversation, the same on every vendor's wire. */

export interface ToolCall {
  id: string;
  name: string;
  /** As text. */
  arguments: string;
}

export interface TurnMetadata {
  /** Of an assistant. */
  tool_calls?: readonly ToolCall[];
  /** Of a tool; "" where unknown. */
  tool_result?: { tool_call_id: string; name: string };
  /** The types of the parts that have no text. */
  attachments?: readonly string[];
  /** Of an answer. */
  model?: string;
  /** The stream broke off. */
  incomplete?: true;
}

export interface Turn {
  readonly role: "user" | "assistant" | "tool";
  /** "" where a tool is called without a word. */
  readonly content: string;
  readonly metadata: TurnMetadata;
}

/** Undefined if nothing was said or called. */
export function assistantTurn(content: string, calls: readonly ToolCall[]): Turn | undefined {
  if (!content && !calls.length) return undefined;
  return { role: "assistant", content, metadata: calls.length ? { tool_calls: calls } : {} };
}

export function userTurn(content: string, attachments: readonly string[]): Turn | undefined {
  if (!content && !attachments.length) return undefined;
  return { role: "user", content, metadata: attachments.length ? { attachments } : {} };
}

export function toolTurn(callId: string, content: string, attachments: readonly string[], name = ""): Turn {
  const metadata = { tool_result: { tool_call_id: callId, name }, ...(attachments.length ? { attachments } : {}) };
  return { role: "tool", content, metadata };
}

/** Results name the tool that an earlier turn called, where they did not themselves. */
export function withToolNames(turns: readonly (Turn | undefined)[]): Turn[] {
  const names = new Map<string, string>();
  return turns.filter((turn) => turn !== undefined).map((turn) => {
    for (const call of turn.metadata.tool_calls ?? []) names.set(call.id, call.name);
    const result = turn.metadata.tool_result;
    const name = result && !result.name ? names.get(result.tool_call_id) : undefined;
    return result && name ? { ...turn, metadata: { ...turn.metadata, tool_result: { ...result, name } } } : turn;
  });
}

/** The turns of an answer, with its metadata. */
export function answered(turns: readonly (Turn | undefined)[], model: string, isIncomplete = false): Turn[] {
  const about: TurnMetadata = { ...(model ? { model } : {}), ...(isIncomplete ? { incomplete: true } : {}) };
  return turns.filter((turn) => turn !== undefined).map((turn) => ({ ...turn, metadata: { ...turn.metadata, ...about } }));
}
