// The set of ops that a peer holds, and its fingerprint (docs/protocol.md, sections 3 "Which ops count" and 5).

import { blake2b } from '@noble/hashes/blake2.js'
import { hex, unhex } from './op.js'

const MASK = 2n ** 512n - 1n
const number = bytes => BigInt(`0x${hex(bytes)}`)

export class OpSet {
  constructor () {
    this.plans = new Map() // plan -> {goal, slots: Map("author/seq" -> [first, second]), waiting: [op]}
    this.ops = new Map() // those that are held: id -> op
  }

  add (op) {
    if (this.ops.has(op.id)) return
    let plan = this.plans.get(op.plan)
    if (plan === undefined) this.plans.set(op.plan, plan = { goal: undefined, slots: new Map(), waiting: new Map() })
    if (op.body.kind === 'goal') {
      plan.goal = op
      this.#place(plan, op)
      for (const waiting of plan.waiting.values()) this.#place(plan, waiting)
      plan.waiting.clear()
    } else if (plan.goal === undefined) {
      plan.waiting.set(op.id, op)
    } else {
      this.#place(plan, op)
    }
  }

  // A slot keeps the two lowest ids; the goal stands first whatever its id.
  #place (plan, op) {
    const slot = `${op.author}/${op.seq}`
    const found = [...plan.slots.get(slot) ?? [], op]
    found.sort((a, b) => a === plan.goal ? -1 : b === plan.goal ? 1 : a.id < b.id ? -1 : 1)
    this.ops.set(op.id, op)
    for (const gone of found.splice(2)) this.ops.delete(gone.id)
    plan.slots.set(slot, found)
  }

  // For the fold: of every known plan its goal, the ops that stand first in their slots, and who used one twice.
  * known () {
    for (const { goal, slots } of this.plans.values()) {
      if (goal === undefined) continue
      const pairs = [...slots.values()]
      const faulty = [...new Set(pairs.filter(pair => pair.length > 1).map(pair => pair[0].author))].sort()
      yield { goal, ops: pairs.map(pair => pair[0]), faulty }
    }
  }

  get fingerprint () {
    let sum = 0n
    for (const id of this.ops.keys()) sum += number(blake2b(unhex(id)))
    return hex(blake2b(unhex((sum & MASK).toString(16).padStart(128, '0')), { dkLen: 16 }))
  }
}
