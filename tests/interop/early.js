// What js-libp2p takes for granted and older Nodes lack (18: all three, 20: the last). Imported before anything else.
import { webcrypto } from 'node:crypto'

globalThis.crypto ??= webcrypto

globalThis.CustomEvent ??= class CustomEvent extends Event {
  #detail
  constructor (type, options) {
    super(type, options)
    this.#detail = options?.detail ?? null
  }

  get detail () { return this.#detail }
}

Promise.withResolvers ??= function () {
  let resolve, reject
  const promise = new Promise((yes, no) => { resolve = yes; reject = no })
  return { promise, resolve, reject }
}
