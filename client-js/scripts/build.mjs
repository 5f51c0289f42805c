// Writes dist/: ES modules with their declarations in esm, and the same as CommonJS in cjs.
//
//     npm run build
//
// `npm run check` checks the types.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const [SRC, ESM, CJS] = ["src", "dist/esm", "dist/cjs"].map((folder) => join(ROOT, folder));
const OPTIONS = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022, esModuleInterop: true };

rmSync(join(ROOT, "dist"), { recursive: true, force: true });
const compiler = fileURLToPath(import.meta.resolve("typescript/bin/tsc"));
execFileSync(process.execPath, [compiler, "--project", "tsconfig.build.json", "--noCheck"], { cwd: ROOT, stdio: "inherit" });

// Declarations are the same in both formats; the package.json of their folder says which they describe.
cpSync(ESM, CJS, { recursive: true, filter: (file) => !file.endsWith(".js") });
writeFileSync(join(CJS, "package.json"), '{ "type": "commonjs" }\n');
for (const name of readdirSync(SRC, { recursive: true }).filter((file) => file.endsWith(".ts"))) {
  const { outputText } = ts.transpileModule(readFileSync(join(SRC, name), "utf8"), { compilerOptions: OPTIONS });
  const target = join(CJS, name.replace(/\.ts$/, ".js"));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, outputText);
}
