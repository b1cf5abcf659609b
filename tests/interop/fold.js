// What a set of ops comes to: one plan's tree (docs/protocol.md, section 3). Nothing is kept up to date here: each
// question is answered from the whole set, once per fold.

import { earlier, sha256, taskId, unhex } from './op.js'

const MAX_DEPTH = 8
const MAX_DRAFTS = 8
const MAX_POLICIES = 64
const SECOND = 1000n << 16n

const max = values => values.reduce((a, b) => b > a ? b : a)
const bySlot = (a, b) => a.seq - b.seq || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
const first = (list, order) => list.reduce((a, b) => a === undefined || order(b, a) < 0 ? b : a, undefined)

export function fold ({ goal, ops, faulty }) {
  return new Plan(goal, ops, faulty)
}

class Plan {
  #known = new Map()

  constructor (goal, ops, faulty) {
    this.goal = goal
    this.faulty = faulty
    this.grounded = new Map([[goal.id, goal]])
    this.tasks = new Map()
    this.drafts = new Map()
    this.said = { vote: [], claim: [], release: [], result: [], policy: [], pick: [], veto: [], retry: [], note: [], pause: [] }
    this.#enter(goal.id, { title: goal.body.title, detail: goal.body.detail, atomic: false, after: [] }, undefined, 0, goal)
    // What an op refers to is earlier, so one pass in order grounds all that can be grounded.
    for (const op of [...ops].sort(earlier)) if (op !== goal && this.#fits(op)) this.#ground(op)
  }

  get done () { return this.doneAt(this.tasks.get(this.goal.id)) !== undefined }
  get paused () { return this.said.pause.at(-1)?.body.act.on ?? false }
  get policy () { return this.policyAt(undefined) }

  #once (what, key, answer) {
    const name = `${what} ${key}`
    if (!this.#known.has(name)) this.#known.set(name, answer())
    return this.#known.get(name)
  }

  // --- grounding

  #enter (id, step, parent, index, maker) {
    const depth = parent === undefined ? 0 : parent.depth + 1
    this.tasks.set(id, { id, step, parent, index, maker, depth, drafts: [], claims: [], results: [], notes: [] })
  }

  #fits (op) {
    if (op.hlc <= this.goal.hlc) return false
    const { body } = op
    const has = (kind, id) => {
      const found = this.grounded.get(id)
      return found?.body.kind === kind && found.hlc < op.hlc ? found : undefined
    }
    const task = id => this.tasks.has(id) && this.tasks.get(id).maker.hlc < op.hlc
    const like = (kind, id) => id === '' || has(kind, id)?.body.task === body.task
    const word = body.act ?? body
    switch (body.kind) {
      case 'goal': return false
      case 'proposal': return task(body.task) && this.tasks.get(body.task).depth < MAX_DEPTH && like('proposal', body.base)
      case 'vote': return has('proposal', body.proposal) !== undefined
      case 'claim': return task(body.task) && like('claim', body.prior)
      case 'release':
      case 'result': return has('claim', body.claim)?.author === op.author
      case 'steer':
        if (op.author !== this.goal.author) return false
        if (word.act === 'pick' || word.act === 'veto') return has('proposal', word.proposal) !== undefined
        return word.act === 'retry' || word.act === 'note' ? task(word.task) : true
    }
    return true // of an unknown kind
  }

  #ground (op) {
    const { body } = op
    this.grounded.set(op.id, op)
    this.said[body.kind === 'steer' ? body.act.act : body.kind]?.push(op)
    const task = this.tasks.get(body.task ?? body.act?.task)
    const claimed = this.tasks.get(this.grounded.get(body.claim)?.body.task)
    if (body.kind === 'proposal') {
      const draft = { op, task, tasks: body.steps.map((_, index) => taskId(op.id, index)) }
      this.drafts.set(op.id, draft)
      task.drafts.push(draft)
      body.steps.forEach((step, index) => this.#enter(draft.tasks[index], step, task, index, op))
    } else if (body.kind === 'claim') task.claims.push(op)
    else if (body.kind === 'result') claimed.results.push(op)
    else if (body.act?.act === 'note') task.notes.push(op)
  }

  // --- policies

  // The goal and the policy steers that count, earliest first.
  get #policies () {
    return this.#once('policies', '', () => [
      this.goal,
      ...[...this.said.policy].sort(bySlot).slice(0, MAX_POLICIES).sort(earlier)
    ])
  }

  // In force at a time; the latest for undefined.
  policyAt (at) {
    const op = this.#policies.filter(op => at === undefined || op.hlc <= at).at(-1)
    return op.body.policy ?? op.body.act.policy
  }

  // --- drafts

  // Each scorer's first approval.
  approvals (draft) {
    return this.#once('approvals', draft.op.id, () => {
      const found = new Map()
      for (const { body, author, hlc } of this.said.vote) {
        if (body.proposal === draft.op.id && body.approve && author !== draft.op.author && !found.has(author)) found.set(author, hlc)
      }
      return found
    })
  }

  quorumAt (draft) {
    const approvals = [...this.approvals(draft)]
    const moments = [...approvals.map(([, hlc]) => hlc), ...this.#policies.map(op => op.hlc)]
    return first(moments.filter(at => {
      const { need, scorers, max_depth: depth } = this.policyAt(at)
      const allowed = approvals.filter(([scorer, hlc]) => hlc <= at && (scorers.length === 0 || scorers.includes(scorer)))
      return allowed.length >= need && draft.task.depth < depth
    }), (a, b) => a < b ? -1 : 1)
  }

  acceptedAt (draft) {
    return this.#once('accepted', draft.op.id, () => {
      const picked = this.said.pick.find(op => op.body.act.proposal === draft.op.id)?.hlc
      const quorum = this.quorumAt(draft)
      return picked === undefined || quorum < picked ? quorum : picked
    })
  }

  // The operator's latest word on a draft.
  word (draft) {
    return this.#once('word', draft.op.id, () =>
      [...this.said.pick, ...this.said.veto].sort(earlier).filter(op => op.body.act.proposal === draft.op.id).at(-1))
  }

  vetoed (draft) { return this.word(draft)?.body.act.act === 'veto' }

  // Whether it's within its author's eight for this task.
  within (draft) {
    const before = draft.task.drafts.filter(other =>
      other.op.author === draft.op.author && bySlot(other.op, draft.op) < 0 && !this.vetoed(other))
    return before.length < MAX_DRAFTS
  }

  winner (task) {
    return this.#once('winner', task.id, () => {
      if (task.step.atomic) return undefined
      const standing = task.drafts.filter(draft => !this.vetoed(draft))
      const picked = standing.filter(draft => this.word(draft) !== undefined)
      if (picked.length > 0) return picked.sort((a, b) => earlier(this.word(a), this.word(b))).at(-1)
      const accepted = standing.filter(draft => this.acceptedAt(draft) !== undefined)
      return first(accepted, (a, b) =>
        earlier({ hlc: this.acceptedAt(a), id: a.op.id }, { hlc: this.acceptedAt(b), id: b.op.id }))
    })
  }

  // --- the tree

  madeBy (task) { return this.drafts.get(task.maker.id) }

  live (task) {
    if (task.parent === undefined) return true
    return this.#once('live', task.id, () => this.live(task.parent) && this.winner(task.parent) === this.madeBy(task))
  }

  children (task) { return (this.winner(task)?.tasks ?? []).map(id => this.tasks.get(id)) }

  leaf (task) {
    if (!this.live(task) || this.winner(task) !== undefined) return false
    return task.step.atomic || task.depth >= this.policy.max_depth || this.result(task) !== undefined
  }

  // When the split was accepted and all children were done.
  completeAt (task) {
    const times = this.children(task).map(child => this.doneAt(child))
    return times.includes(undefined) ? undefined : max([this.acceptedAt(this.winner(task)), ...times])
  }

  wantsSynthesis (task) {
    if (task.parent === undefined) return this.policy.synthesis !== 'none'
    return this.policy.synthesis === 'all' && this.policyAt(this.completeAt(task)).synthesis === 'all'
  }

  // Something that executors do: a leaf, or a complete branch that wants synthesis.
  workable (task) {
    if (!this.live(task)) return false
    if (this.winner(task) === undefined) return this.leaf(task)
    return this.completeAt(task) !== undefined && this.wantsSynthesis(task)
  }

  gate (task) {
    return this.#once('gate', task.id, () => {
      if (task.parent === undefined) return 0n
      const befores = task.step.after.map(index => this.doneAt(this.tasks.get(this.madeBy(task).tasks[index])))
      const times = [this.gate(task.parent), ...befores]
      return times.includes(undefined) ? undefined : max(times)
    })
  }

  // Claims have to be later than this; undefined: none counts.
  since (task) {
    return this.#once('since', task.id, () => {
      const made = task.parent === undefined ? this.goal.hlc : this.acceptedAt(this.madeBy(task))
      const times = [made, this.gate(task)]
      if (this.winner(task) !== undefined) times.push(this.completeAt(task))
      if (times.includes(undefined)) return undefined
      return max([...times, ...this.said.retry.filter(op => op.body.act.task === task.id).map(op => op.hlc)])
    })
  }

  // --- work

  // The claims that count, in the order in which they win.
  claims (task) {
    return this.#once('claims', task.id, () => {
      const since = this.since(task)
      if (since === undefined) return []
      const lot = op => sha256(unhex(task.id), Buffer.from(op.author))
      return task.claims.filter(op => op.hlc > since)
        .map(op => [op, { hlc: op.hlc, id: lot(op) + op.id }])
        .sort(([, a], [, b]) => earlier(a, b)).map(([op]) => op)
    })
  }

  // {chain, holder, failures}
  holding (task) {
    return this.#once('holding', task.id, () => {
      if (!this.workable(task)) return { chain: [], holder: undefined, failures: 0 }
      const { lease_s: lease, attempts } = this.policy
      const claims = this.claims(task)
      const chain = []
      let failures = 0
      let givenBack = 0
      for (let link = claims[0]; link !== undefined;) {
        chain.push(link)
        const lapsed = link.hlc + BigInt(lease) * SECOND
        const release = this.said.release.find(op => op.body.claim === link.id)
        const released = release?.hlc
        const next = claims.find(op =>
          op.body.prior === link.id && (op.hlc >= lapsed || (released !== undefined && op.hlc > released)))
        if (release !== undefined && !(next?.hlc <= released)) {
          if (release.body.failed || ++givenBack > 64) failures++
          if (failures >= attempts) return { chain, holder: undefined, failures }
        }
        if (next === undefined) return { chain, holder: released === undefined ? link : undefined, failures }
        link = next
      }
      return { chain, holder: undefined, failures }
    })
  }

  result (task) {
    return this.#once('result', task.id, () => {
      if (!this.live(task)) return undefined
      const counting = new Map(this.claims(task).map(op => [op.id, op]))
      let found = task.results.filter(op => counting.has(op.body.claim))
      if (this.winner(task) !== undefined) {
        if (!this.workable(task)) return undefined
      } else if (!task.step.atomic && task.depth < this.policy.max_depth) {
        // It wants a split now; what was begun when it was a leaf stands.
        found = found.filter(op => task.depth >= this.policyAt(counting.get(op.body.claim).hlc).max_depth)
      }
      return found[0]
    })
  }

  doneAt (task) {
    return this.#once('done', task.id, () => {
      if (!this.live(task)) return undefined
      const complete = this.winner(task) === undefined ? undefined : this.completeAt(task)
      if (complete !== undefined && !this.wantsSynthesis(task)) return complete
      return this.result(task)?.hlc
    })
  }

  state (task) {
    if (!this.live(task)) return 'superseded'
    if (this.doneAt(task) !== undefined) return 'done'
    if (!this.workable(task)) {
      if (this.winner(task) !== undefined) return 'accepted'
      return task.drafts.some(draft => !this.vetoed(draft)) ? 'draft' : 'open'
    }
    if (this.since(task) === undefined) return 'waiting'
    const { holder, failures } = this.holding(task)
    if (holder !== undefined) return 'claimed'
    return failures >= this.policy.attempts ? 'failed' : 'ready'
  }
}
