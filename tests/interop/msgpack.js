// MessagePack, as much as the protocol needs (docs/protocol.md, "Encoding"). A reader only: a listener writes nothing.
// Integers come out as BigInt, byte strings as Uint8Array, maps as Map.

export class Invalid extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const MAX_LEVELS = 16
const MAX_VALUES = 4096

// What a value's first byte says: its type, and its length or value, or how many bytes tell that.
function describe (first) {
  if (first <= 0x7f) return ['int', 0, BigInt(first)]
  if (first <= 0x8f) return ['map', 0, first & 0x0f]
  if (first <= 0x9f) return ['list', 0, first & 0x0f]
  if (first <= 0xbf) return ['text', 0, first & 0x1f]
  if (first >= 0xe0) return ['int', 0, BigInt(first - 256)]
  return {
    0xc0: ['nil', 0, 0],
    0xc2: ['bool', 0, false],
    0xc3: ['bool', 0, true],
    0xc4: ['bytes', 1],
    0xc5: ['bytes', 2],
    0xc6: ['bytes', 4],
    0xc7: ['extension', 1],
    0xc8: ['extension', 2],
    0xc9: ['extension', 4],
    0xca: ['float', 0, 4],
    0xcb: ['float', 0, 8],
    0xcc: ['int', 1],
    0xcd: ['int', 2],
    0xce: ['int', 4],
    0xcf: ['int', 8],
    0xd0: ['int', -1],
    0xd1: ['int', -2],
    0xd2: ['int', -4],
    0xd3: ['int', -8],
    0xd4: ['extension', 0, 1],
    0xd5: ['extension', 0, 2],
    0xd6: ['extension', 0, 4],
    0xd7: ['extension', 0, 8],
    0xd8: ['extension', 0, 16],
    0xd9: ['text', 1],
    0xda: ['text', 2],
    0xdb: ['text', 4],
    0xdc: ['list', 2],
    0xdd: ['list', 4],
    0xde: ['map', 2],
    0xdf: ['map', 4]
  }[first]
}

export class Reader {
  constructor (bytes) {
    this.bytes = bytes
    this.at = 0
    this.values = 0
  }

  get ended () { return this.at === this.bytes.length }

  take (length) {
    if (length > this.bytes.length - this.at) throw new Invalid('ends too early')
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }

  // [type, value]: an integer or boolean itself, of text and bytes the length, of maps and lists the number of entries.
  head () {
    const found = describe(this.take(1)[0])
    if (found === undefined) throw new Invalid('no MessagePack')
    const [type, width, value] = found
    if (width === 0) return [type, value]
    const bits = Math.abs(width) * 8
    let number = 0n
    for (const byte of this.take(Math.abs(width))) number = number << 8n | BigInt(byte)
    if (type === 'int') return [type, width < 0 ? BigInt.asIntN(bits, number) : number]
    return [type, Number(number)]
  }

  expect (type) {
    const [found, value] = this.head()
    if (found !== type) throw new Invalid(`${found} instead of ${type}`)
    return value
  }

  text () {
    return this.decoded(this.expect('text'))
  }

  decoded (length) {
    try {
      return utf8.decode(this.take(length))
    } catch (error) {
      throw error instanceof Invalid ? error : new Invalid("text that isn't UTF-8")
    }
  }

  // One value of the kinds that may stand in an op.
  value (level = 1) {
    if (++this.values > MAX_VALUES) throw new Invalid('too many values')
    const [type, value] = this.head()
    switch (type) {
      case 'int':
      case 'bool': return value
      case 'text': return this.decoded(value)
      case 'bytes': return this.take(value)
      case 'list':
      case 'map': break
      default: throw new Invalid(`${type} has no place here`)
    }
    if (level > MAX_LEVELS) throw new Invalid('nested too deep')
    if (type === 'list') {
      const list = []
      for (let i = 0; i < value; i++) list.push(this.value(level + 1))
      return list
    }
    const map = new Map()
    for (let i = 0; i < value; i++) {
      const key = this.text()
      if (map.has(key)) throw new Invalid(`${key} stands there twice`)
      map.set(key, this.value(level + 1))
    }
    return map
  }

  // The bytes of one value of any kind, unread.
  raw () {
    const start = this.at
    for (let left = 1; left > 0; left--) {
      const [type, value] = this.head()
      if (type === 'map') left += 2 * value
      else if (type === 'list') left += value
      else if (type === 'text' || type === 'bytes' || type === 'float') this.take(value)
      else if (type === 'extension') this.take(value + 1)
    }
    return this.bytes.subarray(start, this.at)
  }

  end () {
    if (!this.ended) throw new Invalid('bytes follow')
  }
}

// One value that has to be all there is.
export function decode (bytes) {
  const reader = new Reader(bytes)
  const value = reader.value()
  reader.end()
  return value
}

// [payload, signature]: how ops and presences travel.
export function decodeSigned (bytes) {
  const reader = new Reader(bytes)
  if (reader.expect('list') !== 2) throw new Invalid("it isn't a payload and a signature")
  const payload = reader.take(reader.expect('bytes'))
  const signature = reader.take(reader.expect('bytes'))
  reader.end()
  return { payload, signature }
}
