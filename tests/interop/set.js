// The set of ops that a peer holds, and its fingerprint (docs/protocol.md, sections 3 "Which ops count" and 5).

import { blake2b } from '@noble/hashes/blake2.js'
import { hex, unhex } from './op.js'

const MASK = 2n ** 512n - 1n
const number = bytes => BigInt(`0x${hex(bytes)}`)

export class OpSet {
  constructor () {
    this.plans = new Map() // plan -> {goal, ops: [op], waiting: Map(id -> op)}
    this.ops = new Map() // those that are held: id -> op
  }

  add (op) {
    if (this.ops.has(op.id)) return
    let plan = this.plans.get(op.plan)
    if (plan === undefined) this.plans.set(op.plan, plan = { goal: undefined, ops: [], waiting: new Map() })
    if (op.body.kind === 'goal') {
      plan.goal = op
      this.#keep(plan, op)
      for (const waiting of plan.waiting.values()) this.#keep(plan, waiting)
      plan.waiting.clear()
    } else if (plan.goal === undefined) {
      plan.waiting.set(op.id, op)
    } else {
      this.#keep(plan, op)
    }
  }

  #keep (plan, op) {
    this.ops.set(op.id, op)
    plan.ops.push(op)
  }

  // For the fold: of every known plan its goal, its ops, and who used a slot twice.
  * known () {
    for (const { goal, ops } of this.plans.values()) {
      if (goal === undefined) continue
      const slots = new Set()
      const faulty = new Set()
      for (const { author, seq } of ops) {
        const slot = `${author}/${seq}`
        if (slots.has(slot)) faulty.add(author)
        slots.add(slot)
      }
      yield { goal, ops, faulty: [...faulty].sort() }
    }
  }

  get fingerprint () {
    let sum = 0n
    for (const id of this.ops.keys()) sum += number(blake2b(unhex(id)))
    return hex(blake2b(unhex((sum & MASK).toString(16).padStart(128, '0')), { dkLen: 16 }))
  }
}
