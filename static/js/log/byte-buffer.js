// A growing byte string in blocks: growing never copies what is stored, even if it is half a gigabyte.

const BLOCK_BYTES = 1 << 20;

export class ByteBuffer {
  constructor() {
    this.blocks = [];
    this.length = 0;
  }

  append(data) {
    let consumed = 0;
    while (consumed < data.length) {
      const within = this.length % BLOCK_BYTES;
      if (within === 0) this.blocks.push(new Uint8Array(BLOCK_BYTES));
      const part = data.subarray(consumed, consumed + BLOCK_BYTES - within);
      this.blocks[this.blocks.length - 1].set(part, within);
      consumed += part.length;
      this.length += part.length;
    }
  }

  /** Returns the bytes from `start` to before `end`: a view if they lie in one block, otherwise a copy. */
  slice(start, end) {
    end = Math.min(end, this.length);
    if (start >= end) return new Uint8Array(0);
    const first = Math.floor(start / BLOCK_BYTES);
    const last = Math.floor((end - 1) / BLOCK_BYTES);
    if (first === last) return this.blocks[first].subarray(start - first * BLOCK_BYTES, end - first * BLOCK_BYTES);
    const out = new Uint8Array(end - start);
    for (let block = first; block <= last; block++) {
      const from = Math.max(start, block * BLOCK_BYTES);
      const to = Math.min(end, (block + 1) * BLOCK_BYTES);
      out.set(this.blocks[block].subarray(from - block * BLOCK_BYTES, to - block * BLOCK_BYTES), from - start);
    }
    return out;
  }
}
