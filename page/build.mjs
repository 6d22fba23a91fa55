// The bundle: one script, one style sheet, the page and the licences, byte for byte the same each time.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

const out = process.argv[2] ?? "../src/whereish/interfaces/workbench/page";
mkdirSync(out, { recursive: true });
await build({
  entryPoints: { app: "src/main.ts" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  outdir: out,
  loader: { ".png": "empty" },
  logLevel: "warning",
});
copyFileSync("src/index.html", `${out}/index.html`);
copyFileSync("src/icon.svg", `${out}/icon.svg`);

// Everything that is in the bundle, found from the packages that it stands on.
const seen = new Map();
const visit = (name) => {
  if (seen.has(name)) return;
  const folder = `node_modules/${name}`;
  const said = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const text = ["LICENSE", "LICENSE.md", "LICENSE.txt", "license"].map((file) => {
    try { return readFileSync(`${folder}/${file}`, "utf8"); } catch { return ""; }
  }).find((found) => found) ?? `License: ${JSON.stringify(said.license)}\n`;
  seen.set(name, `${said.name} ${said.version} (${said.license})\n\n${text.trim()}\n`);
  for (const next of Object.keys(said.dependencies ?? {})) visit(next);
};
for (const name of Object.keys(JSON.parse(readFileSync("package.json", "utf8")).dependencies)) visit(name);
const data = "Base map: Natural Earth (public domain) through world-atlas and us-atlas (ISC, US Census Bureau).\n"
  + "Town names and populations: GeoNames (geonames.org), CC BY 4.0.\n";
const rule = `\n${"-".repeat(72)}\n\n`;
writeFileSync(`${out}/LICENSES.txt`, [data, ...[...seen.keys()].sort().map((name) => seen.get(name))].join(rule));
