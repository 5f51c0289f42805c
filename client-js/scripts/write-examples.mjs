// Writes the examples of the pages to examples/, which git ignores, so that tsc checks them.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const EXAMPLES = join(ROOT, "examples");
const PAGES = ["../docs/typescript.md", "README.md"];

/** A package that is not installed: one provider is enough for the tests. */
const PROVIDER = `declare module "@ai-sdk/openai" {
  export const openai: (id: string) => import("@ai-sdk/provider").LanguageModelV3;
}
`;

const examples = PAGES.flatMap((page) => [...readFileSync(join(ROOT, page), "utf8").matchAll(/```ts\n(.*?)```/gs)]);
rmSync(EXAMPLES, { recursive: true, force: true });
mkdirSync(EXAMPLES);
writeFileSync(join(EXAMPLES, "provider.d.ts"), PROVIDER);
for (const [index, [, example]] of examples.entries()) {
  writeFileSync(join(EXAMPLES, `example-${index + 1}.ts`), `${example}export {};\n`);
}
