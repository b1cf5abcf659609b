"""The operator: the person's own key. Publishes goals and steering, and nothing unless asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmtui.plan.ops import AnyAct, Goal, Op, OpId, Steer, check

if TYPE_CHECKING:
    from swarmtui.peer.peer import Peer


class Operator:
    """Speaks for the person."""

    role = "operator"

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def give(self, goal: Goal) -> Op:
        """Publish a goal. Returns when it's in the own replica and on its way.

        Raises:
            InvalidOp: the goal breaks a limit (a blank title, a policy that contradicts itself …).
        """
        check(goal)
        (op,) = await self.peer.say(b"", goal)
        return op

    async def steer(self, plan: OpId, act: AnyAct) -> Op:
        """Publish a decision on a plan. It counts only if this peer gave the plan's goal.

        Raises:
            PermissionError: another gave the goal.
            KeyError: the plan isn't known here.
        """
        if self.peer.replica.plans[plan].operator != self.peer.peer_id:
            raise PermissionError("only the person who gave the goal can steer it")
        body = Steer(act=act)
        check(body)
        (op,) = await self.peer.say(plan, body)
        return op
