// What Python sends (pages/parts/map_component.py, `pack`): one run of bytes.
//
//   4 bytes   length of the header, little-endian, a multiple of 4
//   header    JSON in UTF-8, padded with spaces
//   float32   the weights of header.numbers, if there are any: rows · cols of its rectangle
//   uint8     the levels of header.picture, of header.overview, of each head of header.gallery

export function decode(data) {
  const bytes = new Uint8Array(data).slice(); // the bytes lie at any offset in the message
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let at = 4 + length;
  const take = (kind, count) => {
    const part = new kind(bytes.buffer, at, count);
    at += part.byteLength;
    return part;
  };
  const { numbers, picture, overview, gallery } = header;
  const values = numbers ? take(Float32Array, numbers[2] * numbers[3]) : null;
  const area = ([rows, cols]) => rows * cols;
  const levels = take(Uint8Array, area(picture.shape));
  const small = take(Uint8Array, area(overview.shape));
  const heads = gallery ? take(Uint8Array, gallery.count * area(gallery.shape)) : null;
  return { ...header, values, levels, small, heads };
}
