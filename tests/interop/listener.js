// A pure listener of one swarm over js-libp2p: it publishes nothing, asks nothing, answers nothing
// (docs/protocol.md, sections 5 "Those who don't ask", 6 and 7).

import './early.js'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { gossipsub } from '@libp2p/gossipsub'
import { identify } from '@libp2p/identify'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { openFrame } from './frame.js'
import { Invalid } from './msgpack.js'
import { OpSet } from './set.js'

const AHEAD_MS = 5_000
const SILENT_AFTER = 3
const REDIAL_MS = 1_000

export class Listener {
  constructor (swarm, addresses, changed) {
    this.topic = `swarmtui/1/${swarm}`
    this.addresses = addresses.map(address => multiaddr(address))
    this.changed = changed
    this.set = new OpSet()
    this.presences = new Map() // peer -> {presence, at: when it was heard}
    this.early = [] // ops whose time hasn't come
    this.invalid = 0
    this.opened = new WeakMap()
  }

  async start () {
    this.node = await createLibp2p({
      transports: [tcp()],
      connectionEncrypters: [noise()],
      streamMuxers: [yamux()],
      services: {
        identify: identify(),
        // Several peers on one machine aren't an attack.
        pubsub: gossipsub({ scoreParams: { IPColocationFactorWeight: 0 } })
      }
    })
    const { pubsub } = this.node.services
    pubsub.topicValidators.set(this.topic, (_, message) => this.#valid(message.data))
    pubsub.addEventListener('message', ({ detail }) => this.#take(this.opened.get(detail.data)))
    pubsub.subscribe(this.topic)
    this.timer = setInterval(() => this.#tick(), REDIAL_MS)
    await this.#dial()
  }

  async stop () {
    clearInterval(this.timer)
    await this.node.stop()
  }

  get peerId () { return this.node.peerId.toString() }

  // Whether this is all that there is, as far as can be told: two others hold the same (or all, if there are fewer).
  get complete () {
    const { fingerprint } = this.set
    const heard = [...this.presences.values()].filter(({ presence }) => !presence.leaving)
    const alike = heard.filter(({ presence }) => presence.fingerprint === fingerprint)
    return heard.length > 0 && alike.length >= Math.min(2, heard.length)
  }

  // GossipSub passes on what is accepted here.
  #valid (data) {
    try {
      this.opened.set(data, openFrame(data))
      return 'accept'
    } catch (error) {
      if (!(error instanceof Invalid)) throw error
      this.invalid++
      return 'reject'
    }
  }

  #take (frame) {
    for (const op of frame?.ops ?? []) this.early.push(op)
    if (frame?.presence !== undefined) this.#hear(frame.presence)
    this.#ripen()
    this.changed()
  }

  #hear (presence) {
    const known = this.presences.get(presence.peer)?.presence
    if (known !== undefined && (presence.run < known.run || (presence.run === known.run && presence.count <= known.count))) return
    this.presences.set(presence.peer, { presence, at: Date.now() })
  }

  // Take the ops that aren't more than 5 s ahead of the wall clock.
  #ripen () {
    const now = BigInt(Date.now() + AHEAD_MS)
    const ripe = this.early.filter(op => op.hlc >> 16n <= now)
    this.early = this.early.filter(op => op.hlc >> 16n > now)
    for (const op of ripe) this.set.add(op)
    return ripe.length > 0
  }

  #tick () {
    const silent = [...this.presences].filter(([, { presence, at }]) => Date.now() - at > SILENT_AFTER * presence.every_ms)
    for (const [peer] of silent) this.presences.delete(peer)
    if (this.#ripen() || silent.length > 0) this.changed()
    if (this.node.getConnections().length === 0) this.#dial()
  }

  async #dial () {
    try {
      await this.node.dial(this.addresses)
    } catch (error) {
      process.stderr.write(`${error.message}\n`)
    }
  }
}
