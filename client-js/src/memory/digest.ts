/**
 * Digests of texts, synchronous in every runtime (WebCrypto has asynchronous ones only).
 *
 * They tell the messages of one program apart, and protect nothing: MurmurHash3's mixing on four lanes of 32 bits.
 */

const SEEDS = [0x9e3779b9, 0x243f6a88, 0xb7e15162, 0xdeadbeef] as const;
const FACTORS = [597399067, 2869860233, 951274213, 2716044179] as const;

/** The digest of texts after an earlier digest. The length of each text counts, so different sequences differ. */
export function digest(before: string, ...texts: readonly string[]): string {
  const lanes: [number, number, number, number] = [...SEEDS];
  for (const text of [before, ...texts]) {
    mix(lanes, text.length);
    for (let index = 0; index < text.length; index += 1) mix(lanes, text.charCodeAt(index));
  }
  return lanes.map(finished).join("");
}

function mix(lanes: [number, number, number, number], value: number): void {
  const [a, b, c, d] = lanes;
  lanes[0] = b ^ Math.imul(a ^ value, FACTORS[0]);
  lanes[1] = c ^ Math.imul(b ^ value, FACTORS[1]);
  lanes[2] = d ^ Math.imul(c ^ value, FACTORS[2]);
  lanes[3] = a ^ Math.imul(d ^ value, FACTORS[3]);
}

/** MurmurHash3's finaliser, as 8 hexadecimal digits. */
function finished(lane: number): string {
  let mixed = Math.imul(lane ^ (lane >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 0).toString(16).padStart(8, "0");
}
