/** Server-sent events in any chunks; the cases of the Python client. */

import { expect, test } from "vitest";
import { SseParser } from "../src/sse.js";

const CASES: [string, string[]][] = [
  ['data: {"a": 1}\n\ndata: {"a": 2}\n\n', ['{"a": 1}', '{"a": 2}']],
  ['data: {"a": 1}\r\n\r\ndata: {"a": 2}\r\n\r\n', ['{"a": 1}', '{"a": 2}']],
  ['data: {"a": 1}\r\rdata: {"a": 2}\r\r', ['{"a": 1}', '{"a": 2}']],
  ['data:{"a":\ndata: 1}\n\n', ['{"a":\n1}']],
  [': a comment\nevent: ping\nid: 7\nretry: 3\ndata: 1\n\n', ["1"]],
  ["\ufeffdata: 1\n\n", ["1"]],
  ["data: \u2028\u0085\n\n", ["\u2028\u0085"]],
  ["data: 1\n\ndata: 2", ["1", "2"]],
  ["data\n\ndatum: 1\n\n", [""]],
  ["", []],
];

test.each(CASES)("%j is read, whole and in single characters", (text, expected) => {
  for (const chunks of [[text], [...text]]) {
    const parser = new SseParser();
    const events = [...chunks.flatMap((chunk) => parser.push(chunk)), ...parser.end()];
    expect(events.map((event) => event.data)).toEqual(expected);
  }
});

test("the fields of an event are its own", () => {
  const events = new SseParser().push("id: 41\n\nid: 42\nevent: added\ndata: 1\n\ndata: 2\n\n");
  expect(events.map((event) => [event.fields.get("id"), event.fields.get("event")])).toEqual([
    ["42", "added"],
    [undefined, undefined],
  ]);
});
