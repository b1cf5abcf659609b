"""Plans in words and pictures."""

from __future__ import annotations

from swarmtui.plan.narrative import sentence, task_of
from swarmtui.plan.ops import Note, Pause, Pick, Proposal, Retry, SetPolicy, Step, Veto
from swarmtui.plan.picture import Picture
from swarmtui.plan.state import State
from swarmtui.plan.views import PlanView

from .scene import START_MS, Scene, living, name_of, peer

EVERYONE = living("ada bob", "cleo dora eva", "finn gus")


def picture_of(scene: Scene) -> Picture:
    return Picture(scene.goal.id, name_of, scene.replica.get)


def draw(scene: Scene, picture: Picture | None = None, changed: tuple[bytes, ...] = ()) -> PlanView:
    return (picture or picture_of(scene)).draw(scene.plan, changed, EVERYONE, peer("you"))


def test_every_op_is_a_sentence_about_its_task() -> None:
    scene = Scene()
    told = []

    def tell(op: object) -> None:
        told.append((sentence(op, scene.plan, name_of, scene.replica.get), task_of(op, scene.replica.get)))  # type: ignore[arg-type]

    tell(scene.goal)
    draft = scene.draft("ada", "Book", "Pack")
    tell(draft)
    refined = scene.say("bob", Proposal(scene.goal.id, (Step("Fly"), Step("Go")), base=draft.id))
    tell(refined)
    tell(scene.vote("cleo", draft))
    tell(scene.vote("eva", draft, approve=False))
    scene.vote("dora", draft)
    book = scene.task(draft).id
    claim = scene.claim("finn", book)
    tell(claim)
    tell(scene.release(claim))
    second = scene.claim("gus", book, claim.id)
    tell(second)
    tell(scene.result(second, "two words"))
    for act in (Pick(draft.id), Veto(draft.id), Retry(book), Note(book, "by train"), Pause(True), Pause(False)):
        tell(scene.steer(act))
    tell(scene.steer(SetPolicy(scene.plan.policy)))
    root = scene.goal.id
    assert told == [
        ("you gave the goal “Plan a trip”", root),
        ('ada drafted "by place" 2 steps for “Plan a trip”', root),
        ("bob refined a draft 2 steps for “Plan a trip”", root),
        ('cleo approved "by place" for “Plan a trip” (specific 70, distinct 80, complete 60)', root),
        ('eva rejected "by place" for “Plan a trip” (specific 70, distinct 80, complete 60)', root),
        ("finn claimed “Book”", book),
        ("finn gave back “Book”: model failed", book),
        ("gus took over “Book”", book),
        ("gus finished “Book” (2 words)", book),
        ("you picked a draft for “Plan a trip”", root),
        ("you vetoed a draft for “Plan a trip”", root),
        ("you asked for “Book” again", book),
        ("you noted on “Book”: by train", book),
        ("you paused the plan", None),
        ("you let the plan go on", None),
        ("you set the policy: quorum 2 of 3", None),
    ]


def test_a_plan_is_drawn_from_its_tasks() -> None:
    scene = Scene()
    draft = scene.draft("ada", "Book", Step(title="Pack", atomic=True, after=(0,)))
    assert draw(scene).tasks[scene.goal.id].status == "1 draft · 0 of 2 votes"
    scene.accept(draft)
    claim = scene.claim("finn", scene.task(draft).id)
    view = draw(scene)
    root, book, pack = view.tasks.values()
    assert (root.status, book.status, pack.status) == ("0/2", "finn", "waits for “Book”")
    assert (book.state, book.holder, book.since) == (State.CLAIMED, "finn", START_MS / 1000 + 5)
    assert pack.after == ("Book",)
    assert root.drafts[0].mark == 70 and root.drafts[0].accepted and root.drafts[0].approvals == 2
    assert [vote.scorer for vote in root.drafts[0].votes] == ["cleo", "dora"]
    scene.result(claim, "booked")
    view = draw(scene)
    assert view.tasks[book.id].output == "booked" and view.tasks[book.id].result_by == "finn"
    assert view.tasks[root.id].status == "1/2"
    assert view.mine and view.operator == "you" and not view.done
    assert view.tasks[book.id].history[-1] == (START_MS / 1000 + 6, "finn finished “Book” (1 word)")


def test_what_has_not_changed_is_the_same_object() -> None:
    scene = Scene()
    draft = scene.draft("ada", "Book", "Pack")
    scene.accept(draft)
    picture = picture_of(scene)
    before = draw(scene, picture)
    book, pack = (scene.task(draft, step).id for step in range(2))
    scene.claim("finn", book)
    after = draw(scene, picture, (book,))
    assert after.tasks[pack] is before.tasks[pack]
    assert after.tasks[book].holder == "finn"
    scene.result(scene.plan.tasks[book].chain[-1])
    # The root wasn't reported, but it counts what's below it.
    assert draw(scene, picture, (book,)).tasks[scene.goal.id].status == "1/2"


def test_who_is_alive_changes_the_reasons() -> None:
    scene = Scene()
    picture = picture_of(scene)
    assert picture.draw(scene.plan, (), living("ada"), peer("you")).stalled == ()
    view = picture.draw(scene.plan, (), living(), peer("ada"))
    assert view.stalled and view.tasks[scene.goal.id].status == "stalled: no decomposer, scorer, executor"
    assert not view.mine
