// The grammars as Visual Studio Code reads them: compiled by its own engine, over a line of each language.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import test from "node:test";

const require = createRequire(import.meta.url);
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

const manifest = JSON.parse(await readFile(new URL("package.json", import.meta.url), "utf8"));
const grammars = new Map(manifest.contributes.grammars.map((grammar) => [grammar.scopeName, grammar.path]));

const engine = readFile(require.resolve("vscode-oniguruma/release/onig.wasm")).then(async (wasm) => {
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  return {
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  };
});

const registry = new textmate.Registry({
  onigLib: engine,
  loadGrammar: async (scope) => {
    const file = new URL(grammars.get(scope), import.meta.url);
    return textmate.parseRawGrammar(await readFile(file, "utf8"), file.pathname);
  },
});

const CASES = {
  "source.ecl": ["monitor m by k = repeat { push(a) { abs(v) > 5 } } # note", { monitor: "keyword.control", m: "entity.name.type", repeat: "keyword.other", abs: "support.function", "# note": "comment.line" }],
  "source.ce": ["detect X restart = [a as b] ; [c(v = 'x')] with n = count(b)", { detect: "keyword.control", X: "entity.name.type", restart: "keyword.other", "'": "string.quoted.single", count: "support.function" }],
  "source.say": ['Report Visit when "Brian enters" followed by Leave within "1h".', { Report: "keyword.control", Visit: "entity.name.type", followed: "keyword.other", '"': "string.quoted.double" }],
  "source.ecco": ["DETECT x per k = (a ; b) within 5min", { DETECT: "keyword.control", x: "entity.name.type", within: "keyword.other", "5min": "constant.numeric" }],
  "source.eql": ["sequence by a.b [process where cidrMatch(ip, \"10.0.0.0/8\")] // note", { sequence: "keyword.control", by: "keyword.other", cidrMatch: "support.function", "// note": "comment.line" }],
  "source.mr.sql": ["create view v as select * from t match_recognize (pattern (A B+) define B as v > prev(v)) -- note", { view: "keyword.control", match_recognize: "keyword.other", prev: "support.function", "-- note": "comment.line" }],
};

test("every grammar has a case", () => assert.deepEqual([...grammars.keys()].sort(), Object.keys(CASES).sort()));

for (const [scope, [line, wanted]] of Object.entries(CASES)) {
  test(scope, async () => {
    const grammar = await registry.loadGrammar(scope);
    const { tokens } = grammar.tokenizeLine(line, textmate.INITIAL);
    const found = new Map(tokens.map((token) => [line.slice(token.startIndex, token.endIndex).trim(), token.scopes.join(" ")]));
    for (const [text, name] of Object.entries(wanted)) {
      assert.ok(found.get(text)?.includes(name), `${text}: ${found.get(text)} (${[...found.keys()].join(" ")})`);
    }
  });
}
