/** What the service has of a conversation, and what it is given before. */

import { Souvenir } from "../../src/index.js";

export interface StoredTurn {
  role: string;
  content: string;
  metadata: Record<string, unknown> | null;
}

/** The messages of an agent's session, oldest first. */
export async function storedIn(souvenir: Souvenir, agent: string, sessionId: string): Promise<StoredTurn[]> {
  const messages = await souvenir.sessions.messages(agent, sessionId);
  return messages.map(({ role, content, metadata }) => ({ role, content, metadata: metadata ?? null }));
}

/** An agent with a block and a memory that answers "When is the launch?". */
export async function teach(souvenir: Souvenir, agent: string): Promise<void> {
  await souvenir.agents.create({ name: agent });
  await souvenir.blocks.create({ agent_name: agent, label: "human", value: "Name: Alice" });
  await souvenir.inNamespace(agent).memories.add({ text: "The launch is on 12 March.", source: "notes" });
}
