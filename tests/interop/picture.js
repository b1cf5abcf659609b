// What two peers have to agree on, as JSON: ids in hex, hlcs as text (they have 64 bits), what is false, empty or none
// left out.

import { fold } from './fold.js'

const filled = fields => Object.fromEntries(Object.entries(fields).filter(([, value]) =>
  Array.isArray(value) ? value.length > 0 : typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value))

// {plan id: picture} of all plans in a set.
export function picture (set) {
  return Object.fromEntries([...set.known()].map(known => [known.goal.id, pictureOf(fold(known))]))
}

function pictureOf (plan) {
  const { need, max_depth, lease_s, attempts, synthesis } = plan.policy
  return filled({
    operator: plan.goal.author,
    done: plan.done,
    paused: plan.paused,
    faulty: plan.faulty,
    policy: { need, max_depth, lease_s, attempts, synthesis },
    tasks: Object.fromEntries([...plan.tasks.values()].map(task => [task.id, pictureOfTask(plan, task)]))
  })
}

function pictureOfTask (plan, task) {
  const { chain, holder, failures } = plan.holding(task)
  return filled({
    title: task.step.title,
    state: plan.state(task),
    leaf: plan.leaf(task),
    winner: plan.winner(task)?.op.id,
    chain: chain.map(op => op.id),
    holder: holder?.id,
    failures,
    result: plan.result(task)?.id,
    done_at: plan.doneAt(task)?.toString(),
    notes: task.notes.map(op => op.id),
    drafts: Object.fromEntries(task.drafts.map(draft => [draft.op.id, filled({
      accepted_at: plan.acceptedAt(draft)?.toString(),
      vetoed: plan.vetoed(draft),
      over: !plan.within(draft)
    })]))
  })
}
