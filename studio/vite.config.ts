import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vite";

/** A digest of all sources, which goes with what is built of them: tests compare it without Node (tests/unit/studio). */
function digest(): string {
  const hash = createHash("sha256");
  const own = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];
  const sources = readdirSync("src").map((name) => join("src", name));
  for (const name of [...own, ...sources].sort()) {
    hash.update(`${name}\n`);
    hash.update(readFileSync(name));
  }
  return hash.digest("hex");
}

function digested(): Plugin {
  return {
    name: "digest-of-sources",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "sources.sha256", source: `${digest()}\n` });
    },
  };
}

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/coincide/studio/page",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    target: "es2022",
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "assets/studio.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  plugins: [digested()],
});
