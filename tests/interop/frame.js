// What travels on the topic (docs/protocol.md, section 5 "Frames").

import { Invalid, Reader } from './msgpack.js'
import { openOp, openPresence } from './op.js'

const MAX_FRAME = 131_072

// {ops, presence}, all of it checked, or Invalid.
export function openFrame (bytes) {
  if (bytes.length > MAX_FRAME) throw new Invalid('too large')
  const reader = new Reader(bytes)
  const found = { ops: [], presence: undefined }
  for (let left = reader.expect('map'); left > 0; left--) {
    const key = reader.text()
    if (key === 'ops') {
      const length = reader.expect('list')
      found.ops = []
      for (let i = 0; i < length; i++) found.ops.push(openOp(reader.raw()))
    } else if (key === 'presence') found.presence = openPresence(reader.raw())
    else reader.raw()
  }
  reader.end()
  if (found.ops.length === 0 && found.presence === undefined) throw new Invalid('empty')
  return found
}
