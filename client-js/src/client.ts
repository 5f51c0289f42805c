/** The client: every operation of the HTTP API, in groups. */

import { addressOf, type Address, type SouvenirOptions } from "./address.js";
import type { CallOptions, Output } from "./calls.js";
import { TimedOut } from "./errors.js";
import * as groups from "./generated/groups.js";
import { Deadline, LONGEST_DELAY_MS, sleep } from "./time.js";
import { Transport } from "./transport.js";

const UNFINISHED = new Set<string>(["queued", "running"]);
const POLL_MS = 200;
const LONGEST_POLL_MS = 2_000;
const WAIT_MS = 120_000;

/** Background jobs. */
class Jobs extends groups.Jobs {
  /**
   * Wait until the job is completed, failed or cancelled, for at most `timeoutMs` milliseconds (120,000).
   *
   * @throws TimedOut If it is still running then; it continues.
   */
  wait(jobId: string, options: CallOptions = {}): Promise<Output<"get_job">> {
    return finished((signal) => this.get(jobId, { signal }), this.transport.address.url, options);
  }
}

/** Extraction of memories from conversations. */
class Extraction extends groups.Extraction {
  /**
   * Wait until the extraction is completed, failed or cancelled, for at most `timeoutMs` milliseconds (120,000).
   *
   * @throws TimedOut If it is still running then; it continues.
   */
  wait(jobId: string, options: CallOptions = {}): Promise<Output<"get_extraction">> {
    return finished((signal) => this.get(jobId, { signal }), this.transport.address.url, options);
  }
}

async function finished<Job extends { status: string }>(
  get: (signal: AbortSignal) => Promise<Job>,
  url: string,
  { timeoutMs = WAIT_MS, signal }: CallOptions,
): Promise<Job> {
  const deadline = new Deadline(signal, Math.min(timeoutMs, LONGEST_DELAY_MS));
  try {
    for (let pauseMs = POLL_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_POLL_MS)) {
      const job = await get(deadline.signal);
      if (!UNFINISHED.has(job.status)) return job;
      await sleep(pauseMs, deadline.signal);
    }
  } catch (error) {
    if (deadline.isOver && !deadline.isAborted) throw new TimedOut(url, timeoutMs);
    throw error;
  } finally {
    deadline.close();
  }
}

/**
 * A client of one service.
 *
 * Each attribute is a group of operations. An argument that is not given takes the service's default; null is sent.
 * Calls that create something send an Idempotency-Key where the service supports one, so that a retry after a lost
 * response does not create it twice.
 *
 *     const souvenir = new Souvenir({ namespace: "team-a" });
 *     await souvenir.memories.add({ text: "Alice leads billing.", source: "team/billing" });
 *     const found = await souvenir.memories.search({ query: "who leads billing?" });
 */
export class Souvenir {
  readonly agents: groups.Agents;
  readonly audit: groups.Audit;
  readonly backups: groups.Backups;
  readonly blocks: groups.Blocks;
  readonly cloudSync: groups.CloudSync;
  readonly concepts: groups.Concepts;
  readonly conflicts: groups.Conflicts;
  readonly context: groups.Context;
  readonly events: groups.Events;
  readonly extraction: Extraction;
  readonly extractionProfiles: groups.ExtractionProfiles;
  readonly facts: groups.Facts;
  readonly figures: groups.Figures;
  readonly folders: groups.Folders;
  readonly graph: groups.Graph;
  readonly health: groups.Health;
  readonly jobs: Jobs;
  readonly keys: groups.Keys;
  readonly links: groups.Links;
  readonly locrits: groups.Locrits;
  readonly longTerm: groups.LongTerm;
  readonly maintenance: groups.Maintenance;
  readonly memories: groups.Memories;
  readonly messages: groups.Messages;
  readonly preferences: groups.Preferences;
  readonly privacy: groups.Privacy;
  readonly sessions: groups.Sessions;
  readonly snapshots: groups.Snapshots;
  readonly tags: groups.Tags;
  readonly transfer: groups.Transfer;
  readonly webhooks: groups.Webhooks;
  readonly #address: Address;

  /** @throws TypeError If an option is invalid. */
  constructor(options: SouvenirOptions = {}) {
    const address = addressOf(options);
    const transport = new Transport(address);
    this.#address = address;
    this.agents = new groups.Agents(transport);
    this.audit = new groups.Audit(transport);
    this.backups = new groups.Backups(transport);
    this.blocks = new groups.Blocks(transport);
    this.cloudSync = new groups.CloudSync(transport);
    this.concepts = new groups.Concepts(transport);
    this.conflicts = new groups.Conflicts(transport);
    this.context = new groups.Context(transport);
    this.events = new groups.Events(transport);
    this.extraction = new Extraction(transport);
    this.extractionProfiles = new groups.ExtractionProfiles(transport);
    this.facts = new groups.Facts(transport);
    this.figures = new groups.Figures(transport);
    this.folders = new groups.Folders(transport);
    this.graph = new groups.Graph(transport);
    this.health = new groups.Health(transport);
    this.jobs = new Jobs(transport);
    this.keys = new groups.Keys(transport);
    this.links = new groups.Links(transport);
    this.locrits = new groups.Locrits(transport);
    this.longTerm = new groups.LongTerm(transport);
    this.maintenance = new groups.Maintenance(transport);
    this.memories = new groups.Memories(transport);
    this.messages = new groups.Messages(transport);
    this.preferences = new groups.Preferences(transport);
    this.privacy = new groups.Privacy(transport);
    this.sessions = new groups.Sessions(transport);
    this.snapshots = new groups.Snapshots(transport);
    this.tags = new groups.Tags(transport);
    this.transfer = new groups.Transfer(transport);
    this.webhooks = new groups.Webhooks(transport);
  }

  get serverUrl(): string {
    return this.#address.url;
  }

  /** The same client for another namespace; undefined for that of the key. */
  inNamespace(namespace: string | undefined): Souvenir {
    const { url, apiKey = "", timeoutMs, maxRetries } = this.#address;
    return new Souvenir({ serverUrl: url, apiKey, timeoutMs, maxRetries, namespace });
  }
}
