"""What is read of a plan before work."""

from __future__ import annotations

from swarmtui.agents import context
from swarmtui.plan.ops import Note, Steer

from . import making


def test_the_way_down_the_neighbours_and_the_notes() -> None:
    plan = making.plan()
    shop, oven = making.accept(plan, making.draft(plan))
    (deep, _) = making.accept(plan, making.draft(plan, task=shop, titles=["Look at streets", "Sign"]), shop)
    plan.root.notes = (making.op(Steer(act=Note(task=plan.id, text="cheap")), "you"),)
    deep.notes = (making.op(Steer(act=Note(task=deep.id, text="near the station")), "you"),)
    assert [task.title for task in context.ancestors(plan, deep)] == ["Open a bakery", "Rent a shop"]
    assert [task.title for task in context.siblings(plan, deep)] == ["Sign"]
    assert context.notes(plan, deep) == ["cheap", "near the station"]
    assert context.siblings(plan, plan.root) == []
    assert oven.title == "Buy an oven"


def test_results_of_own_and_inherited_dependencies() -> None:
    plan = making.plan()
    shop, oven = making.accept(plan, making.draft(plan))
    one, two = making.accept(plan, making.draft(plan, task=shop, titles=["Look", "Sign"]), shop)
    bake, _ = making.accept(plan, making.draft(plan, task=oven, titles=["Compare", "Order"]), oven)
    making.result(one, "Mill Street 3")
    making.result(two, "1,200 a month")
    oven.after = (shop.id,)
    assert context.dependencies(plan, bake) == [
        ("Rent a shop › Look", "Mill Street 3"),
        ("Rent a shop › Sign", "1,200 a month"),
    ]
    making.result(shop, "Mill Street 3 for 1,200")
    assert context.dependencies(plan, bake) == [("Rent a shop", "Mill Street 3 for 1,200")]
    assert context.parts_of(plan, plan.root) == [("Rent a shop", "Mill Street 3 for 1,200")]
