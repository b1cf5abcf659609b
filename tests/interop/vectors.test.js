// The vectors, by this client's fold. VECTORS=file checks other sets of ops (python -m tests.interop.vectors --random).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Invalid } from './msgpack.js'
import { openOp, openPresence, taskId, unhex } from './op.js'
import { picture } from './picture.js'
import { OpSet } from './set.js'

const read = name => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
const given = process.env.VECTORS

// An op stands there as its place in the list, a task as its proposal's place and its step's index.
function written (value, ids) {
  if (Array.isArray(value)) return value.map(item => written(item, ids))
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [written(key, ids), written(item, ids)]))
  }
  if (typeof value !== 'string' || !/^\d{1,5}(\/\d+)?$/.test(value)) return value
  const [place, step] = value.split('/')
  return step === undefined ? ids[place] : taskId(ids[place], Number(step))
}

for (const file of given ? [given] : ['vectors/tales.json', 'vectors/histories.json']) {
  for (const { name, about, ops, held, fingerprint, plans } of read(file)) {
    test(`${name}: ${about}`, () => {
      const opened = ops.map(wire => openOp(unhex(wire)))
      const expected = written(plans, opened.map(op => op.id))
      for (const order of [opened, [...opened].reverse()]) {
        const set = new OpSet()
        for (const op of order) set.add(op)
        assert.equal(set.ops.size, held)
        assert.equal(set.fingerprint, fingerprint)
        assert.deepEqual(picture(set), expected)
      }
    })
  }
}

const alone = given ? {} : read('vectors/ops.json')
for (const { about, wire, id } of alone.ops ?? []) {
  test(`op: ${about}`, () => assert.equal(openOp(unhex(wire)).id, id))
}
for (const { about, wire, reason } of alone['invalid ops'] ?? []) {
  test(`refused: ${about} (${reason})`, () => assert.throws(() => openOp(unhex(wire)), Invalid))
}
for (const { about, wire, peer } of alone.presences ?? []) {
  test(`presence: ${about}`, () => assert.equal(openPresence(unhex(wire)).peer, peer))
}
for (const { about, wire, reason } of alone['invalid presences'] ?? []) {
  test(`refused presence: ${about} (${reason})`, () => assert.throws(() => openPresence(unhex(wire)), Invalid))
}
