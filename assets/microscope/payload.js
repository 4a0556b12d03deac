// What Python sends (pages/parts/microscope.py, `pack`): one run of bytes, because bytes and arrays
// inside a dictionary would reach the browser as text.
//
//   4 bytes   length of the header, little-endian, a multiple of 4
//   header    JSON in UTF-8, padded with spaces: {manifest, text, step, cell, epoch, id, key}
//   the rest  float32, little-endian

/** Bytes, or an already decoded object -> {manifest, values, text, …}. */
export function decode(data) {
  if (!(data instanceof Uint8Array || data instanceof ArrayBuffer)) return data;
  // The bytes lie at any offset in the message: copied, so that a typed array may be laid on them.
  const bytes = new Uint8Array(data).slice();
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { ...header, values: new Float32Array(bytes.buffer, 4 + length) };
}
