// The files of a chosen or dropped folder, as an upload names them.
import { filesFromDrop } from "../wizard-zip.js";

// What operating systems put into folders by themselves.
const LEFT_OUT = new Set([".DS_Store", "Thumbs.db", "desktop.ini"]);

/** Of an input of files. The name of a chosen folder is dropped: its content is the dataset. */
export function chosenFiles(input) {
  const files = [...input.files].map((file) => ({
    path: file.webkitRelativePath.split("/").slice(1).join("/") || file.name,
    file,
  }));
  return described(files);
}

/** Of a drop. */
export async function droppedFiles(transfer) {
  return described(await filesFromDrop(transfer, new Set()));
}

/** In the order of the hub's lists, so that it reads as little of them as possible. */
export function described(files) {
  const key = ({ path }) => path.replaceAll("/", "\0");
  return files
    .filter(({ path }) => !LEFT_OUT.has(path.slice(path.lastIndexOf("/") + 1)))
    .sort((one, other) => (key(one) < key(other) ? -1 : 1))
    .map(({ path, file }) => ({ path, file, size: file.size, modified_at: file.lastModified / 1000 }));
}

/** Returns why these files cannot be uploaded, "" if they can. `limits`: {files, bytes}. */
export function folderProblem(files, limits, formatBytes) {
  if (!files.length) return "There are no files in it: choose another folder.";
  if (files.length > limits.files) {
    const [count, limit] = [files.length, limits.files].map((number) => number.toLocaleString("en"));
    return `It has ${count} files, and an upload has at most ${limit}: pack small ones into archives.`;
  }
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size <= limits.bytes) return "";
  const counts = `${formatBytes(size)}, and an upload has at most ${formatBytes(limits.bytes)}`;
  return `It has ${counts}: keep it in a bucket or a folder of the nodes, and add that as a datastore.`;
}
