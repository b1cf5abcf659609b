"""A hostile member: it has a key and a link like any other, and breaks every rule that it can.

It isn't a :class:`Peer`: it speaks raw frames. What it does is a list of tricks (:data:`TRICKS`), one of which it plays
every few seconds. It knows the plan, so its ops are well aimed.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
import trio

from swarmtui.peer.frames import SHARED, bundles, put_together, take_apart
from swarmtui.peer.network import Event, Frame, NetworkError
from swarmtui.peer.presence import Presence, seal_presence
from swarmtui.plan.envelope import Identity, seal, to_wire
from swarmtui.plan.ops import (
    Body,
    Claim,
    Goal,
    InvalidOp,
    Marks,
    Note,
    Op,
    OpId,
    Pause,
    Proposal,
    Release,
    Result,
    Retry,
    SetPolicy,
    Steer,
    Step,
    Vote,
)
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Plan, State, Task

from .member import EPOCH_MS, identity_of

if TYPE_CHECKING:
    from .scenario import Member as Spec
    from .world import World

MARKS = Marks(99, 99, 99)
MS = 1 << 16
REMEMBERED = 200
MAX_SAID = 1_500
"""Ops of one hostile member in all, the floods aside: more would only cost time."""
FLOOD = 150
MAX_FLOODS = 40
"""Of one hostile member: those that stay, in a run of hours, would only cost time."""


class Hostile:
    """Plays tricks until it's told to stop."""

    def __init__(self, world: World, number: int, spec: Spec) -> None:
        self.number, self.spec, self.world = number, spec, world
        self.identity = identity_of(world.scenario.seed, number)
        self.network = world.ether.network(self.identity.peer_id)
        self.rng = random.Random(f"{world.scenario.seed}/{number}/hostile")
        self.replica = Replica()
        self.said = 0
        self.floods = 0
        self.errors: list[str] = []
        self._frames: list[bytes] = []
        self._withheld: list[tuple[float, Op]] = []
        self._seqs: dict[OpId, int] = {}
        self._presences = 0
        self._stopped = trio.Event()
        self._scope = trio.CancelScope()

    def stop(self) -> None:
        """Play no more tricks; stay connected."""
        self._scope.cancel()

    async def live(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen and play tricks, until cancelled."""
        send, receive = trio.open_memory_channel[Event](1_000)
        async with trio.open_nursery() as nursery:
            await nursery.start(self.network.run, send, self._answer, lambda data: True)
            nursery.start_soon(self._listen, receive)
            task_status.started()
            with self._scope:
                while True:
                    await trio.sleep(self.spec.every_s * self.rng.uniform(0.5, 1.5))
                    await self._play()
            await trio.sleep_forever()

    async def _listen(self, receive: trio.MemoryReceiveChannel[Event]) -> None:
        async for event in receive:
            if isinstance(event, Frame):
                self._frames = [*self._frames[-REMEMBERED:], event.data]
                try:
                    self.replica.add_many(SHARED(bytes(wire)) for wire in take_apart(event.data).ops)
                except (InvalidOp, ValueError):
                    continue

    async def _answer(self, source: str, request: bytes) -> bytes:
        """Garbage, nothing, a lie, or a refusal."""
        lie = {"ops": [], "vector": {}, "fingerprint": self.rng.randbytes(16)}
        answers = [b"", self.rng.randbytes(40), msgspec.msgpack.encode(lie), request]
        if self.rng.random() < 0.3:
            raise NetworkError("no")
        return self.rng.choice(answers)

    async def _play(self) -> None:
        now = trio.current_time()
        due = [op for at, op in self._withheld if at <= now]
        self._withheld = [item for item in self._withheld if item[0] > now]
        await self.tell(due)
        trick = TRICKS[self.rng.choice(self.spec.tricks)]
        await trick(self)

    # --- speaking

    def now(self) -> int:
        return (EPOCH_MS + int(trio.current_time() * 1000) + self.spec.skew_ms) * MS

    def make(self, plan: OpId, body: Body, hlc: int | None = None, seq: int | None = None) -> Op:
        """Make an op; None: the present, the next number."""
        if seq is None:
            seq = self._seqs.get(plan, 0)
            self._seqs[plan] = seq + 1
        return seal(self.identity, plan, seq, self.now() if hlc is None else max(0, hlc), body)

    async def tell(self, ops: list[Op]) -> None:
        """Publish to all."""
        self.said += len(ops)
        for bundle in bundles(ops):
            await self.network.publish(put_together(bundle))

    def whisper(self, ops: list[Op], target: str) -> None:
        """Tell one peer."""
        self.said += len(ops)
        self.world.ether.whisper(self.network, target, put_together(ops))

    async def present(self, identity: Identity, **words: object) -> None:
        """Say by presence whatever."""
        self._presences += 1
        at = self.now() // MS
        presence = Presence(peer=identity.peer_id, at=at, run=at << 10, count=self._presences, **words)  # type: ignore[arg-type]
        await self.network.publish(put_together(presence=seal_presence(identity, presence)))

    # --- what there is to aim at

    def plan(self) -> Plan | None:
        plans = list(self.replica.plans.values())
        return self.rng.choice(plans) if plans and self.said < MAX_SAID else None

    def pick_task(self, *states: State) -> tuple[Plan, Task] | None:
        plan = self.plan()
        tasks = [task for task in plan.tasks.values() if task.live and task.state in states] if plan else []
        return (plan, self.rng.choice(tasks)) if plan and tasks else None

    def others(self) -> list[str]:
        peers = [peer for peer in sorted(self.world.ether.numbers) if peer != self.identity.peer_id]
        self.rng.shuffle(peers)
        return peers

    def draft(self, task: bytes) -> Proposal:
        count = self.rng.randint(2, 5)
        steps = tuple(
            Step(f"{self.rng.choice(['Steal', 'Break', 'Hide'])} {self.rng.randrange(10**6)}", atomic=True)
            if self.rng.random() < 0.8
            else Step("\x1b[2J[/red]" * 5, after=tuple(range(i)))
            for i in range(count)
        )
        return Proposal(task=task, steps=steps, rationale="trust me", angle="crime")

    def aimed(self) -> tuple[Plan, Body, int] | None:
        """Something that means something now: (plan, body, hlc of what it refers to)."""
        plan = self.plan()
        if plan is None:
            return None
        bodies: list[tuple[Body, int]] = []
        for task in plan.tasks.values():
            if not task.live:
                continue
            bodies += [(Vote(draft.op.id, True, MARKS), draft.op.hlc) for draft in task.drafts.values()]
            if task.state in (State.READY, State.CLAIMED):
                prior = task.chain[-1].id if task.chain and self.rng.random() < 0.7 else b""
                bodies.append((Claim(task.id, prior), task.chain[-1].hlc if task.chain else plan.op.hlc))
            if task.state in (State.OPEN, State.DRAFT) and self.rng.random() < 0.3:
                bodies.append((self.draft(task.id), plan.op.hlc))
        return (plan, *self.rng.choice(bodies)) if bodies else None


# --- the tricks


async def equivocate(self: Hostile) -> None:
    """Two ops with one number, each told to another half of the swarm."""
    one, other = self.aimed(), self.aimed()
    if one is None or other is None or one[0] is not other[0]:
        return
    first = self.make(one[0].id, one[1])
    second = self.make(one[0].id, other[1], hlc=first.hlc + self.rng.randint(1, 9), seq=first.seq)
    peers = self.others()
    for number, peer in enumerate(peers):
        self.whisper([first if number % 2 else second], peer)
    self.replica.add_many((first, second))


async def backdate(self: Hostile) -> None:
    """An op that says it's older than what others did meanwhile."""
    aim = self.aimed()
    if aim is not None:
        plan, body, after = aim
        hlc = after + self.rng.choice((1, 5 * MS, (self.now() - after) // 2))
        await self.tell([self.make(plan.id, body, hlc)])


async def future(self: Hostile) -> None:
    """An op from a clock that's ahead."""
    aim = self.aimed()
    if aim is not None:
        ahead = self.rng.choice((4_000, 6_000, 30_000, 3_600_000, 10**12))
        await self.tell([self.make(aim[0].id, aim[1], self.now() + ahead * MS)])


async def stuff(self: Hostile) -> None:
    """Approve everything, twice, its own included."""
    plan = self.plan()
    if plan is not None:
        drafts = [draft for task in plan.tasks.values() if task.live for draft in task.drafts.values()]
        await self.tell([self.make(plan.id, Vote(draft.op.id, True, MARKS)) for draft in drafts for _ in range(2)][:60])


async def claim_all(self: Hostile) -> None:
    """Claim everything, say that it's at work, do nothing."""
    plan = self.plan()
    if plan is None:
        return
    tasks = [task for task in plan.tasks.values() if task.live and task.state in (State.READY, State.CLAIMED)]
    ops = []
    for task in tasks[:30]:
        if task.holder is None or task.holder.author != self.identity.peer_id:
            ops.append(self.make(plan.id, Claim(task.id, task.chain[-1].id if task.chain else b"")))
    await self.tell(ops)
    self.replica.add_many(ops)
    held = [task for task in tasks if task.holder is not None and task.holder.author == self.identity.peer_id]
    if held:
        await self.present(
            self.identity, role="executor", doing="working", subject=self.rng.choice(held).title, name="busy"
        )


async def withhold(self: Hostile) -> None:
    """Make a claim, with its result or release, or a vote now, and tell it much later."""
    aim = self.aimed()
    if aim is None:
        return
    plan, body, _ = aim
    op = self.make(plan.id, body)
    late = trio.current_time() + self.rng.uniform(5, 60)
    self._withheld.append((late, op))
    if isinstance(body, Claim):
        word: Body = Result(op.id, "late") if self.rng.random() < 0.7 else Release(op.id, "no")
        self._withheld.append((late + self.rng.choice((0, 20)), self.make(plan.id, word, op.hlc + 2)))


async def meddle(self: Hostile) -> None:
    """Results and releases for others' claims, steering, drafts nobody asked for."""
    plan = self.plan()
    if plan is None:
        return
    task = self.rng.choice(sorted(plan.tasks))
    bodies: list[Body] = [Steer(Pause(True)), Steer(Retry(task)), Steer(Note(task, "obey")), self.draft(task)]
    bodies.append(Steer(SetPolicy(msgspec.structs.replace(plan.policy, need=1, of=1))))
    claims = [claim for found in plan.tasks.values() for claim in found.chain]
    if claims:
        claim = self.rng.choice(claims)
        bodies += [Result(claim.id, "mine"), Release(claim.id, "yours")]
    await self.tell([self.make(plan.id, body) for body in self.rng.sample(bodies, 3)])


async def flood(self: Hostile) -> None:
    """Hundreds of ops at once, that mean nothing, or point nowhere."""
    self.floods += 1
    if self.floods > MAX_FLOODS:
        return
    plan = self.plan()
    known = plan.id if plan is not None else bytes(32)
    ops = [
        self.make(
            known if self.rng.random() < 0.9 else self.rng.randbytes(32), Vote(self.rng.randbytes(32), True, MARKS)
        )
        for _ in range(FLOOD)
    ]
    await self.tell(ops)


async def malformed(self: Hostile) -> None:
    """Garbage, real frames with a few bytes changed, forged ops."""
    data = [self.rng.randbytes(self.rng.randrange(200)), b"\x81\xa3ops" + b"\x91" * 500]
    if self._frames:
        frame = bytearray(self.rng.choice(self._frames))
        for _ in range(self.rng.randint(1, 4)):
            frame[self.rng.randrange(len(frame))] = self.rng.randrange(256)
        data.append(bytes(frame))
    ops = list(self.replica.ops())
    if ops:
        op = self.rng.choice(ops)
        forged = msgspec.msgpack.encode((op.payload, self.rng.randbytes(64)))
        data.append(msgspec.msgpack.encode({"ops": [msgspec.Raw(forged), msgspec.Raw(to_wire(op))]}))
    await self.network.publish(self.rng.choice(data))


async def replay(self: Hostile) -> None:
    """What it heard before, again."""
    for frame in self.rng.sample(self._frames, min(5, len(self._frames))):
        await self.network.publish(frame)


async def lie(self: Hostile) -> None:
    """Presences that lie: of what it holds, of what it does, of who it is."""
    task = self.pick_task(*State)
    subject = task[1].title if task else "x"
    who = self.identity
    if self.rng.random() < 0.5:
        who = Identity.from_seed(self.rng.choice((b"s", b"t", b"u")) * 32)
    role, doing = self.rng.choice(
        (("decomposer", "drafting"), ("scorer", "judging"), ("executor", "working"), ("executor", "claiming"))
    )
    await self.present(who, role=role, doing=doing, subject=subject, ops=10**9, fingerprint=self.rng.randbytes(16))


async def found(self: Hostile) -> None:
    """A plan of its own, once."""
    if not any(plan.operator == self.identity.peer_id for plan in self.replica.plans.values()):
        policy = self.world.scenario.policy
        op = seal(self.identity, b"", 0, self.now() - 1000 * MS, Goal("Rob a bank", policy=policy, nonce=b"h"))
        self._seqs[op.plan] = 1
        await self.tell([op])
        self.replica.add(op)


async def pester(self: Hostile) -> None:
    """Ask everybody for everything."""
    asked = msgspec.msgpack.encode({"do": "swap", "vector": {}})
    garbage = self.rng.randbytes(30)
    for peer in self.others()[:3]:
        try:
            with trio.move_on_after(1):
                await self.network.ask(peer, self.rng.choice((asked, garbage)))
        except NetworkError:
            continue


Trick = Callable[[Hostile], Awaitable[None]]
TRICKS: dict[str, Trick] = {
    trick.__name__: trick
    for trick in (
        equivocate,
        backdate,
        future,
        stuff,
        claim_all,
        withhold,
        meddle,
        flood,
        malformed,
        replay,
        lie,
        found,
        pester,
    )
}
