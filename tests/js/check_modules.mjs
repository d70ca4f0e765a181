// Parses and links modules as a browser does before it runs them, and runs none of them. Linking fails where a file is
// missing or does not export a name that is imported. Paths come on the command line. Prints {faults: [sentence],
// imports: {path: [path]}} as JSON.
import { readFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { SourceTextModule } from "node:vm";

const modules = new Map();
const onDemand = new Map(); // path -> what it loads by import(), which linking does not follow
const faults = [];
const ON_DEMAND = /\bimport\("([^"]+)"\)/g;

async function parse(path) {
  if (!modules.has(path)) {
    const source = await readFile(path, "utf8");
    modules.set(path, new SourceTextModule(source, { identifier: path }));
    onDemand.set(path, [...source.matchAll(ON_DEMAND)].map(([, specifier]) => resolve(specifier, path)));
  }
  return modules.get(path);
}

function resolve(specifier, importer) {
  // A browser knows no packages: only an address leads to a module.
  if (!/^\.{1,2}\//.test(specifier)) throw new Error(`"${specifier}" is not a relative address`);
  return fileURLToPath(new URL(specifier, pathToFileURL(importer)));
}

for (const path of process.argv.slice(2)) {
  try {
    const module = await parse(path);
    if (module.status === "unlinked") {
      await module.link((specifier, importer) => parse(resolve(specifier, importer.identifier)));
    }
    for (const loaded of onDemand.get(path)) await parse(loaded);
  } catch (error) {
    faults.push(`${path}: ${error.message}`);
  }
}

const importsOf = (module) => [
  ...module.moduleRequests.map(({ specifier }) => resolve(specifier, module.identifier)),
  ...onDemand.get(module.identifier),
];
const imports = faults.length ? {} : Object.fromEntries([...modules].map(([path, each]) => [path, importsOf(each)]));
console.log(JSON.stringify({ faults, imports }));
