// Ops and presences: from bytes to something checked (docs/protocol.md, sections 2 and 6). Ids are hex from here on.

import { createHash, createPublicKey, verify } from 'node:crypto'
import { Invalid, decode, decodeSigned } from './msgpack.js'

export const hex = bytes => Buffer.from(bytes).toString('hex')
export const unhex = text => new Uint8Array(Buffer.from(text, 'hex'))
export const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex')
export const taskId = (proposal, index) => sha256(unhex(proposal), new Uint8Array([index]))

const MAX_OP = 65_536
const MAX_PAYLOAD = 65_456
const MAX_PRESENCE = 4_096

// --- what fields may hold

const fault = why => { throw new Invalid(why) }

const integer = (low, high) => value => {
  if (typeof value !== 'bigint' || value < BigInt(low) || value > BigInt(high)) fault(`isn't an integer of ${low}-${high}`)
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? value : Number(value)
}
const bool = value => typeof value === 'boolean' ? value : fault("isn't a boolean")
const text = (low, high) => value => {
  if (typeof value !== 'string') fault("isn't text")
  const length = [...value].length // code points; value.length would count UTF-16's units
  return length >= low && length <= high ? value : fault(`hasn't ${low}-${high} characters`)
}
const bytes = (...lengths) => value => {
  if (!(value instanceof Uint8Array)) fault("isn't bytes")
  return lengths.includes(value.length) ? hex(value) : fault(`hasn't ${lengths.join(' or ')} bytes`)
}
const bytesUpTo = most => value => value instanceof Uint8Array && value.length <= most ? hex(value) : fault('is too long')
const list = (item, low, high) => value => {
  if (!Array.isArray(value) || value.length < low || value.length > high) fault(`isn't a list of ${low}-${high}`)
  return value.map(item)
}
const word = (...words) => value => words.includes(value) ? value : fault(`is none of ${words.join(', ')}`)

// Fields: [check] when there has to be one, [check, default] otherwise. What isn't listed is ignored.
const struct = (fields, whole = value => value) => value => {
  if (!(value instanceof Map)) fault("isn't a map")
  const found = {}
  for (const [name, [check, ...missing]] of Object.entries(fields)) {
    if (!value.has(name) && missing.length === 0) fault(`${name} is missing`)
    try {
      found[name] = value.has(name) ? check(value.get(name)) : structuredClone(missing[0])
    } catch (error) {
      throw error instanceof Invalid ? new Invalid(`${name} ${error.message}`) : error
    }
  }
  return whole(found)
}

const WHITE = /^[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/
const id = bytes(32)
const idOrNone = bytes(0, 32)
const title = value => WHITE.test(text(1, 200)(value)) ? fault('is blank') : value
const long = text(0, 4000)
const skill = text(1, 40)
const mark = integer(0, 100)

const policy = struct({
  need: [integer(1, 1000), 2],
  of: [integer(1, 1000), 3],
  scorers: [list(text(0, Infinity), 0, 1000), []],
  rivals: [integer(1, 8), 2],
  rounds: [integer(0, 8), 2],
  fan_out: [list(integer(2, 16), 2, 2), [2, 6]],
  max_depth: [integer(1, 8), 3],
  pass_mark: [mark, 60],
  patience_s: [integer(1, 86_400), 120],
  lease_s: [integer(1, 86_400), 60],
  attempts: [integer(1, 100), 3],
  settle_ms: [integer(0, 60_000), 1000],
  skills: [list(skill, 0, 32), ['write']],
  synthesis: [word('none', 'root', 'all'), 'root']
}, found => found.need <= found.of && found.fan_out[0] <= found.fan_out[1] ? found : fault('contradicts itself'))

const step = struct({
  title: [title],
  detail: [long, ''],
  atomic: [bool, false],
  needs: [skill, 'write'],
  after: [list(integer(0, 15), 0, 16), []]
})
const steps = value => list(step, 2, 16)(value).map((one, i) => one.after.every(j => j < i) ? one : fault('wait for later ones'))

const ACTS = {
  policy: struct({ policy: [policy] }),
  pick: struct({ proposal: [id] }),
  veto: struct({ proposal: [id] }),
  retry: struct({ task: [id] }),
  note: struct({ task: [id], text: [text(1, 4000)] }),
  pause: struct({ on: [bool] })
}

const KINDS = {
  goal: struct({ title: [title], detail: [long, ''], policy: [policy, policy(new Map())], nonce: [bytesUpTo(32), ''] }),
  proposal: struct({ task: [id], steps: [steps], rationale: [long, ''], angle: [text(0, 200), ''], base: [idOrNone, ''] }),
  vote: struct({
    proposal: [id],
    approve: [bool],
    marks: [struct({ specific: [mark], distinct: [mark], complete: [mark] })],
    critique: [long, '']
  }),
  claim: struct({ task: [id], prior: [idOrNone, ''] }),
  release: struct({ claim: [id], reason: [long, ''], failed: [bool, true] }),
  result: struct({ claim: [id], output: [text(1, 32_000)] }),
  steer: struct({ act: [act] })
}

// A union: told apart by a text field. What a later version adds comes out as unknown.
function act (value) { return told(value, 'act', ACTS) }
function told (value, tag, kinds) {
  const name = value instanceof Map ? value.get(tag) : undefined
  if (typeof name !== 'string') fault(`has no ${tag}`)
  return Object.hasOwn(kinds, name) ? { [tag]: name, ...kinds[name](value) } : { unknown: name }
}

const header = struct({
  v: [integer(1, 1)],
  plan: [bytes(0, 32)],
  author: [text(1, 128)],
  seq: [integer(0, 65_535)],
  hlc: [integer(0, 2n ** 63n - 1n)],
  body: [value => value]
})

const presence = struct({
  peer: [text(1, 128)],
  at: [integer(0, 2n ** 53n - 1n)],
  run: [integer(0, 2n ** 53n - 1n)],
  count: [integer(0, 2n ** 53n - 1n)],
  every_ms: [integer(1000, 300_000), 10_000],
  role: [text(0, 40), ''],
  name: [text(0, 80), ''],
  skills: [list(text(0, 40), 0, 32), []],
  model: [text(0, 200), ''],
  machine: [text(0, 200), ''],
  doing: [text(0, 80), ''],
  subject: [text(0, 200), ''],
  since: [integer(0, 2n ** 53n - 1n), 0],
  tokens_per_second_x10: [integer(0, 2n ** 53n - 1n), 0],
  ops: [integer(0, 2n ** 53n - 1n), 0],
  said: [integer(0, 2n ** 53n - 1n), 0],
  fingerprint: [bytesUpTo(32), ''],
  leaving: [bool, false]
})

// --- who signed

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const KEY_ID = '002408011220'
const SPKI = Buffer.from('302a300506032b6570032100', 'hex') // how Node wants a bare Ed25519 key
const P = 2n ** 255n - 19n
// The y of every point of small order.
const SMALL = [0n, 1n, P - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd83d3d706a17c7n]
const keys = new Map()

const y = point => {
  const bytes = [...point].reverse()
  bytes[0] &= 0x7f
  return BigInt(`0x${hex(bytes)}`)
}

function keyOf (author) {
  if (!keys.has(author)) keys.set(author, readKey(author))
  return keys.get(author) ?? fault("the author isn't an Ed25519 peer id")
}

function readKey (author) {
  let number = 0n
  for (const letter of author) {
    const digit = ALPHABET.indexOf(letter)
    if (digit < 0) return undefined
    number = number * 58n + BigInt(digit)
  }
  // 38 bytes, of which the first is zero: one "1" in front, and the next letter isn't one.
  if (!/^1[^1]/.test(author) || number >> 256n !== BigInt(`0x${KEY_ID}`)) return undefined
  const key = unhex((number & (2n ** 256n - 1n)).toString(16).padStart(64, '0'))
  if (y(key) >= P || SMALL.includes(y(key))) return undefined
  return createPublicKey({ key: Buffer.concat([SPKI, key]), format: 'der', type: 'spki' })
}

function checkSignature (author, prefix, payload, signature) {
  const key = keyOf(author)
  if (signature.length !== 64 || SMALL.includes(y(signature.subarray(0, 32)) % P)) fault('the signature is bad')
  if (!verify(null, Buffer.concat([Buffer.from(prefix), payload]), key, signature)) fault('the signature is bad')
}

// --- the doors

// An op as it travels, or Invalid with the reason. `body` is {kind: …} or {unknown: …}.
export function openOp (wire) {
  if (wire.length > MAX_OP) fault('too large')
  const { payload, signature } = decodeSigned(wire)
  if (payload.length > MAX_PAYLOAD) fault('too large')
  const { plan, author, seq, hlc, body } = header(decode(payload))
  checkSignature(author, 'swarmtui/op/1\0', payload, signature)
  const said = told(body, 'kind', KINDS)
  const opId = sha256(payload)
  if (said.kind === 'goal') {
    if (plan !== '' || seq !== 0) fault('a goal begins its own plan')
  } else if (plan === '') fault('no plan')
  return { id: opId, plan: plan || opId, author, seq, hlc: BigInt(hlc), body: said, size: payload.length }
}

export function openPresence (wire) {
  if (wire.length > MAX_PRESENCE) fault('too large')
  const { payload, signature } = decodeSigned(wire)
  const said = presence(decode(payload))
  checkSignature(said.peer, 'swarmtui/presence/1\0', payload, signature)
  return said
}

// The one order among ops.
export const earlier = (a, b) => a.hlc < b.hlc ? -1 : a.hlc > b.hlc ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0
