// Makes a zip of a folder in the browser. Entries are stored without compression, and the Blob refers to the files
// instead of holding their bytes, so a large folder costs no memory. The hub leaves out what ignore files name; this
// module only skips folders that never belong to a source, so that they are not uploaded.

const SKIPPED_FOLDERS = new Set([
  ".git",
  ".hg",
  ".svn",
  "__pycache__",
  ".venv",
  "venv",
  "node_modules",
  ".mypy_cache",
  ".pytest_cache",
  ".ruff_cache",
  ".tox",
  ".idea",
]);
const MAX_BYTES = 2 ** 31;
const MAX_FILES = 65_000;

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n >>> 0;
});

/**
 * Returns a Blob with the zip of `files`: [{path, file}]. Calls onProgress(sentence) as it goes. Throws an Error with a
 * sentence for the person if the folder is empty or too large.
 */
export async function folderToZip(files, onProgress) {
  const included = files.filter(
    ({ path }) =>
      !path
        .split("/")
        .slice(0, -1)
        .some((name) => SKIPPED_FOLDERS.has(name)),
  );
  const size = included.reduce((sum, { file }) => sum + file.size, 0);
  if (included.length === 0) throw new Error("The folder contains no file that can be uploaded.");
  if (included.length > MAX_FILES)
    throw new Error(
      `The folder contains ${included.length} files, more than the limit of ${MAX_FILES}. ` + "Leave data out of it.",
    );
  if (size > MAX_BYTES)
    throw new Error(
      `The folder contains ${(size / 2 ** 30).toFixed(1)} GiB, more than the limit of 2 GiB. ` +
        "Leave data out of it, or keep data on the nodes.",
    );
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [index, { path, file }] of included.entries()) {
    if (index % 50 === 0) onProgress(`Packing ${index + 1} of ${included.length} files`);
    const name = new TextEncoder().encode(path);
    const fields = commonFields(await crc32(file), file.size, name.length);
    parts.push(header(0x04034b50, [], fields, []), name, file);
    directory.push(header(0x02014b50, [20], fields, [0, 0, 0, 0, 0, offset & 0xffff, offset >>> 16]), name);
    offset += 30 + name.length + file.size;
  }
  const length = directory.reduce((sum, part) => sum + part.byteLength, 0);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, included.length, true);
  end.setUint16(10, included.length, true);
  end.setUint32(12, length, true);
  end.setUint32(16, offset, true);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

/** [{path, file}] of the dropped files and folders. A single dropped folder is the root. `skipped`: the names of
 * folders that are left out. */
export async function filesFromDrop(transfer, skipped = SKIPPED_FOLDERS) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = [];
  for (const entry of entries)
    await collect(entry, entries.length === 1 && entry.isDirectory ? null : entry.name, files, skipped);
  return files;
}

async function collect(entry, path, files, skipped) {
  if (entry.isFile) {
    files.push({ path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  const reader = entry.createReader();
  // readEntries returns at most a hundred entries per call, and none after the last one.
  for (let batch = await readBatch(reader); batch.length; batch = await readBatch(reader)) {
    for (const child of batch) {
      if (!(child.isDirectory && skipped.has(child.name)))
        await collect(child, path ? `${path}/${child.name}` : child.name, files, skipped);
    }
  }
}

const readBatch = (reader) => new Promise((resolve, reject) => reader.readEntries(resolve, reject));

// The fields that the local and the central header share: version 2.0, UTF-8 names, stored, 1980-01-01, CRC-32, both
// sizes, length of the name, no extra field. See section 4.3 of PKWARE's APPNOTE.
function commonFields(sum, size, nameLength) {
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
    for (const byte of chunk.value) sum = CRC_TABLE[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  }
  return (sum ^ 0xffffffff) >>> 0;
}
