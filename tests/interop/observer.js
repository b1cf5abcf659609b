#!/usr/bin/env node
// Show the plans of a swarm: node observer.js --swarm NAME --join MULTIADDR [--json] [--until-done] [--timeout SECONDS]

import { Listener } from './listener.js'
import { parseArgs } from 'node:util'
import { picture } from './picture.js'
import { taskId } from './op.js'

const { values: options } = parseArgs({
  options: {
    swarm: { type: 'string', default: 'home' },
    join: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
    'until-done': { type: 'boolean', default: false },
    timeout: { type: 'string', default: '0' }
  }
})
const PAUSE_MS = 250

let due
const listener = new Listener(options.swarm, options.join, () => { due ??= setTimeout(show, PAUSE_MS) })

function show () {
  due = undefined
  const { set, complete } = listener
  const plans = picture(set)
  const known = { peer: listener.peerId, ops: set.ops.size, fingerprint: set.fingerprint, complete, plans }
  process.stdout.write(options.json ? `${JSON.stringify(known)}\n` : `${asText(known)}\n`)
  if (options['until-done'] && complete && Object.values(plans).some(plan => plan.done)) end(0)
}

function asText ({ ops, fingerprint, complete, plans }) {
  const lines = [`${ops} ops, fingerprint ${fingerprint}${complete ? ', complete' : ''}`]
  for (const [id, { tasks }] of Object.entries(plans)) {
    const below = (task, indent) => {
      const { title, state, winner, holder, result } = tasks[task]
      const by = Object.entries({ winner, holder, result }).filter(([, op]) => op).map(([what, op]) => ` ${what} ${op.slice(0, 8)}`)
      // Titles are others' text: no control characters on a terminal.
      lines.push(`${indent}${title.replace(/\p{C}/gu, '\ufffd')}: ${state}${by.join('')}`)
      for (const child of childrenOf(tasks, winner)) below(child, `${indent}  `)
    }
    below(id, '  ')
  }
  return lines.join('\n')
}

function childrenOf (tasks, winner) {
  return winner === undefined ? [] : listener.set.ops.get(winner).body.steps.map((_, index) => taskId(winner, index)).filter(id => id in tasks)
}

async function end (code) {
  setTimeout(() => process.exit(code), 2_000).unref() // a peer that hangs mustn't keep us
  await listener.stop()
  process.exit(code)
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => end(0))
if (Number(options.timeout) > 0) setTimeout(() => end(1), 1000 * Number(options.timeout)).unref()
await listener.start()
