// A folder -> a zip, in the browser: entries are stored as they are, and the Blob refers to the files instead of
// holding them, so a large folder costs no memory. What an ignore file names is left out by the hub as well; here
// only folders that never belong to a source are skipped, so that they need not travel.

const NEVER = new Set([".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".idea"]);
const MOST_BYTES = 2 ** 31;
const MOST_FILES = 65_000;

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n >>> 0;
});

/** files: [{path, file}]; tell(text) is called as it goes. Returns a Blob. */
export async function folderToZip(files, tell) {
  const wanted = files.filter(({ path }) => !path.split("/").slice(0, -1).some((name) => NEVER.has(name)));
  const size = wanted.reduce((sum, { file }) => sum + file.size, 0);
  if (wanted.length === 0) throw new Error("The folder holds no file that can be uploaded.");
  if (wanted.length > MOST_FILES) throw new Error(`The folder holds ${wanted.length} files, more than a zip of this kind can; leave data out of it.`);
  if (size > MOST_BYTES) throw new Error(`The folder holds ${(size / 2 ** 30).toFixed(1)} GiB; leave data out of it, or keep it on the nodes.`);
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [index, { path, file }] of wanted.entries()) {
    if (index % 50 === 0) tell(`Packing ${index + 1} of ${wanted.length} files`);
    const name = new TextEncoder().encode(path);
    const fields = shared(await crc32(file), file.size, name.length);
    parts.push(header(0x04034b50, [], fields, []), name, file);
    directory.push(header(0x02014b50, [20], fields, [0, 0, 0, 0, 0, offset & 0xffff, offset >>> 16]), name);
    offset += 30 + name.length + file.size;
  }
  const length = directory.reduce((sum, part) => sum + part.byteLength, 0);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, wanted.length, true);
  end.setUint16(10, wanted.length, true);
  end.setUint32(12, length, true);
  end.setUint32(16, offset, true);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

/** Files and folders that were dropped, with their paths; a single dropped folder is the root. */
export async function filesOfDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const found = [];
  for (const entry of entries) await walk(entry, entries.length === 1 && entry.isDirectory ? null : entry.name, found);
  return found;
}

async function walk(entry, path, found) {
  if (entry.isFile) {
    found.push({ path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  const reader = entry.createReader();
  // A reader hands out at most a hundred entries at a time.
  for (let some = await read(reader); some.length; some = await read(reader)) {
    for (const inner of some) {
      if (!(inner.isDirectory && NEVER.has(inner.name))) await walk(inner, path ? `${path}/${inner.name}` : inner.name, found);
    }
  }
}

const read = (reader) => new Promise((resolve, reject) => reader.readEntries(resolve, reject));

// What the local and the central header have in common: version, UTF-8 flag, stored, 1980-01-01, sum, sizes, lengths.
function shared(sum, size, nameLength) {
  const low = (value) => value & 0xffff;
  const high = (value) => value >>> 16;
  return [20, 0x0800, 0, 0, 0x21, low(sum), high(sum), low(size), high(size), low(size), high(size), nameLength, 0];
}

function header(signature, before, fields, after) {
  const words = [...before, ...fields, ...after];
  const view = new DataView(new ArrayBuffer(4 + words.length * 2));
  view.setUint32(0, signature, true);
  words.forEach((word, index) => view.setUint16(4 + index * 2, word, true));
  return view;
}

async function crc32(file) {
  let sum = 0xffffffff;
  const reader = file.stream().getReader();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    for (const byte of chunk.value) sum = TABLE[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  }
  return (sum ^ 0xffffffff) >>> 0;
}
