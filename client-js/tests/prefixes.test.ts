/** Detection of new turns in a request: the table of the Python client (tests/client/test_prefixes.py). */

import { expect, test } from "vitest";
import { KnownPrefixes, Progress } from "../src/memory/prefixes.js";
import type { Turn } from "../src/memory/wires/turns.js";

const u = (content: string, ...attachments: string[]): Turn => ({
  role: "user",
  content,
  metadata: attachments.length ? { attachments } : {},
});
const a = (content: string, ...calls: string[]): Turn => ({
  role: "assistant",
  content,
  metadata: { tool_calls: calls.map((id) => ({ id, name: "f", arguments: "" })) },
});
const t = (id: string, content = "42", name = ""): Turn => ({
  role: "tool",
  content,
  metadata: { tool_result: { tool_call_id: id, name } },
});

const { ASKED: FAILED, ANSWERING: BROKEN, ANSWERED: OK } = Progress;

/** The requests of one conversation: what is sent, its outcome, and what of it is new. */
type Case = [sent: Turn[], outcome: Progress, isNew: string[]][];

const CASES: Record<string, Case> = {
  "one question": [[[u("hi")], OK, ["hi"]]],
  "a history at first sight is stored from the user's last turn on": [[[u("old"), a("old answer"), u("new")], OK, ["new"]]],
  "a tool loop at first sight is stored from its question on": [
    [[u("old"), a("answer"), u("weather?"), a("", "c1"), t("c1", "rain")], OK, ["weather?", "", "rain"]],
  ],
  "the next request brings only what is new": [
    [[u("hi")], OK, ["hi"]],
    [[u("hi"), a("hello"), u("how are you?")], OK, ["how are you?"]],
    [[u("hi"), a("hello"), u("how are you?"), a("fine"), u("good")], OK, ["good"]],
  ],
  "a retry of a failed call brings nothing": [
    [[u("hi")], FAILED, ["hi"]],
    [[u("hi")], FAILED, []],
    [[u("hi")], OK, []],
    [[u("hi"), a("hello"), u("bye")], OK, ["bye"]],
  ],
  "a retry of a stream that broke brings nothing": [
    [[u("hi")], BROKEN, ["hi"]],
    [[u("hi")], OK, []],
  ],
  "the same said again is stored again": [
    [[u("yes")], OK, ["yes"]],
    [[u("yes"), a("sure?"), u("yes")], OK, ["yes"]],
    [[u("yes"), a("sure?"), u("yes"), a("really?"), u("yes")], OK, ["yes"]],
  ],
  "the same said again without a history is stored again, and its retry is not": [
    [[u("yes")], OK, ["yes"]],
    [[u("yes")], FAILED, ["yes"]],
    [[u("yes")], OK, []],
    [[u("yes")], OK, ["yes"]],
  ],
  "a failed call's question stays in the history": [
    [[u("one")], FAILED, ["one"]],
    [[u("one"), u("two")], OK, ["two"]],
  ],
  "an answer of the caller, replacing that of a model that failed, is stored": [
    [[u("one")], FAILED, ["one"]],
    [[u("one"), a("Sorry, try later."), u("two")], OK, ["Sorry, try later.", "two"]],
  ],
  "an answer that the caller changed is not stored again": [
    [[u("one")], OK, ["one"]],
    [[u("one"), a("(shortened)"), u("two")], OK, ["two"]],
  ],
  "the part of a broken answer that the caller keeps is not stored again": [
    [[u("one")], BROKEN, ["one"]],
    [[u("one"), a("the beginn"), u("two")], OK, ["two"]],
  ],
  "a tool loop brings each result once": [
    [[u("weather?")], OK, ["weather?"]],
    [[u("weather?"), a("", "c1"), t("c1", "rain")], OK, ["rain"]],
    [[u("weather?"), a("", "c1"), t("c1", "rain"), a("", "c2"), t("c2", "wind")], FAILED, ["wind"]],
    [[u("weather?"), a("", "c1"), t("c1", "rain"), a("", "c2"), t("c2", "wind")], OK, []],
  ],
  "a tool's name that is seen only with the call makes no other turn of its result": [
    [[u("weather?")], OK, ["weather?"]],
    [[u("weather?"), a("", "c1"), t("c1", "rain", "get_weather")], FAILED, ["rain"]],
    [[u("weather?"), t("c1", "rain")], OK, []],
  ],
  "a history that was cut brings the user's last turn": [
    [[u("one")], OK, ["one"]],
    [[u("one"), a("1"), u("two")], OK, ["two"]],
    [[u("two"), a("2"), u("three")], OK, ["three"]],
  ],
  "a summarised history brings the user's last turn": [
    [[u("one")], OK, ["one"]],
    [[u("Summary: one."), u("two")], OK, ["two"]],
  ],
  "a tool loop whose history is cut does not bring its question again": [
    [[u("one")], OK, ["one"]],
    [[u("one"), a("1"), u("weather?")], OK, ["weather?"]],
    [[u("weather?"), a("", "c1"), t("c1", "rain")], OK, ["rain"]],
    [[u("Summary"), u("weather?"), a("", "c1"), t("c1", "rain"), a("", "c2"), t("c2", "wind")], OK, ["wind"]],
  ],
  "calls that were made outside are stored with the next": [
    [[u("one")], OK, ["one"]],
    [[u("one"), a("1"), u("outside"), a("there"), u("two")], OK, ["outside", "there", "two"]],
  ],
  "a question that was edited is stored": [
    [[u("one")], OK, ["one"]],
    [[u("one"), a("1"), u("two")], OK, ["two"]],
    [[u("one"), a("1"), u("two, edited")], OK, ["two, edited"]],
  ],
  "a prefill of the assistant is no turn": [
    [[u("as JSON"), a("{")], FAILED, ["as JSON"]],
    [[u("as JSON"), a("{")], OK, []],
    [[u("as JSON"), a('{"a":')], OK, []],
  ],
  "results alone, where the vendor keeps the conversation": [
    [[u("weather?")], OK, ["weather?"]],
    [[t("c1", "rain")], FAILED, ["rain"]],
    [[t("c1", "rain")], OK, []],
    [[u("thanks")], OK, ["thanks"]],
  ],
  "other attachments are another turn": [
    [[u("what is this?", "image")], FAILED, ["what is this?"]],
    [[u("what is this?", "image", "image")], OK, ["what is this?"]],
  ],
  nothing: [[[], OK, []]],
};

test.each(Object.entries(CASES))("%s", (_, requests) => {
  const known = new KnownPrefixes();
  for (const [sent, outcome, isNew] of requests) {
    const news = known.take(["agent", "session"], sent);
    expect(news.turns.map((turn) => turn.content)).toEqual(isNew);
    news.note(outcome);
  }
});

test("conversations are isolated", () => {
  const known = new KnownPrefixes();
  for (const conversation of [["a", "s"], ["b", "s"], ["a", "t"], ["as", ""]]) {
    expect(known.take(conversation, [u("hi")]).turns).toHaveLength(1);
  }
});

test("the least recently used digests are forgotten", () => {
  const known = new KnownPrefixes(4);
  known.take(["old"], [u("hi")]);
  known.take(["new"], [u("hi")]);
  expect(known.take(["new"], [u("hi")]).turns).toEqual([]);
  known.take(["newest"], [u("hi")]);
  expect(known.take(["newest"], [u("hi")]).turns).toEqual([]);
  expect(known.take(["old"], [u("hi")]).turns).toHaveLength(1);
});

test("a question keeps its identity within its tool loop only", () => {
  const known = new KnownPrefixes();
  const take = (...turns: Turn[]) => known.take(["agent", "session"], turns);
  const asked = take(u("weather?"));
  const first = take(u("weather?"), a("", "c1"), t("c1"));
  const cut = take(u("x"), u("weather?"), a("", "c1"), t("c1"), a("", "c2"), t("c2"));
  expect(new Set([asked.question, first.question, cut.question]).size).toBe(1);
  expect([asked, first, cut].map((news) => news.isInLoop)).toEqual([false, true, true]);
  expect(take(u("weather?"), a("rain"), u("and now?")).question).not.toBe(asked.question);
  expect(take(t("c3")).question).toBeUndefined();
});

test("among many similar conversations no two have the same digest", () => {
  const known = new KnownPrefixes();
  for (let number = 0; number < 20_000; number += 1) {
    expect(known.take(["agent", String(number % 7)], [u(`q ${number}`)]).turns).toHaveLength(1);
  }
});
