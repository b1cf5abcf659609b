"""How far a plan is and why it stalls."""

from __future__ import annotations

from swarmtui.plan.ops import Pause, Retry, Step, Veto
from swarmtui.plan.progress import Living, counts, live_tasks, plan_stalls, stall
from swarmtui.plan.state import State, Task
from swarmtui.plan.views import Stall

from .scene import Scene, living, peer

EVERYONE = living("ada bob", "cleo dora eva", "finn gus")


def reason(scene: Scene, task: Task, living: Living) -> str:
    found = stall(scene.plan, task, living)
    return found.reason if found else ""


def test_a_goal_without_decomposers_stalls_and_names_the_remedy() -> None:
    scene = Scene()
    assert plan_stalls(scene.plan, living(scorers="cleo dora", executors="finn")) == (
        Stall("“Plan a trip”: no decomposer", "press {add_decomposer} to add one"),
    )
    assert plan_stalls(scene.plan, EVERYONE) == ()


def test_a_vote_stalls_when_too_few_scorers_are_left() -> None:
    scene = Scene()
    draft = scene.draft("ada", "Book", "Pack")
    assert "1 scorer, quorum 2" in reason(scene, scene.task(), living("ada", "cleo"))
    scene.vote("dora", draft)  # who then leaves: its vote still counts
    assert reason(scene, scene.task(), living("ada", "cleo")) == ""


def test_when_all_have_gone_all_that_the_task_still_needs_are_named() -> None:
    scene = Scene()
    assert stall(scene.plan, scene.task(), living()) == Stall(
        "no decomposer, scorer, executor", "press {add_decomposer}, {add_scorer}, {add_executor} to add them"
    )
    assert reason(scene, scene.task(), living(scorers="cleo")) == "no decomposer, executor"
    scene.draft("ada", "Book", "Pack")
    assert reason(scene, scene.task(), living()) == "no scorer, executor"
    assert "0 scorers, quorum 2" in reason(scene, scene.task(), living(executors="finn"))


def test_the_author_of_a_draft_cannot_help_it_to_a_quorum() -> None:
    scene = Scene()
    scene.draft("cleo", "Book", "Pack")
    assert "quorum 2" in reason(scene, scene.task(), living("", "cleo dora"))
    assert reason(scene, scene.task(), living("", "cleo dora eva")) == ""


def test_only_scorers_that_the_policy_names_can_help() -> None:
    scene = Scene(scorers=(peer("cleo"), peer("dora")))
    scene.draft("ada", "Book", "Pack")
    assert "policy names" in reason(scene, scene.task(), living("ada", "cleo eva"))
    assert reason(scene, scene.task(), living("ada", "cleo dora")) == ""


def test_vetoed_drafts_need_a_decomposer() -> None:
    scene = Scene()
    draft = scene.draft("ada", "Book", "Pack")
    scene.steer(Veto(draft.id))
    assert "no decomposer" in reason(scene, scene.task(), living("", "cleo dora"))
    assert reason(scene, scene.task(), EVERYONE) == ""


def test_work_stalls_without_an_executor_of_the_skill() -> None:
    scene = Scene(skills=("write", "cook"))
    draft = scene.draft("ada", Step(title="Cook", atomic=True, needs="cook"), "Pack")
    scene.accept(draft)
    cook = scene.task(draft)
    assert reason(scene, cook, living()) == "no executor"
    assert reason(scene, cook, living(executors="finn")) == "no executor has the skill 'cook'"
    assert reason(scene, cook, living(executors="finn", skills="cook")) == ""
    # The other step can still be done, so the plan as a whole isn't stalled.
    assert plan_stalls(scene.plan, living("ada", "cleo dora", "finn")) == ()


def test_a_task_given_back_too_often_waits_for_the_operator() -> None:
    scene = Scene(attempts=2)
    draft = scene.draft("ada", "Book", Step(title="Pack", atomic=True, after=(0,)))
    scene.accept(draft)
    book = scene.task(draft).id
    first = scene.claim("finn", book)
    scene.release(first)
    second = scene.claim("gus", book, first.id)
    assert plan_stalls(scene.plan, EVERYONE) == ()
    scene.release(second)
    assert scene.task(draft).state is State.FAILED
    assert plan_stalls(scene.plan, EVERYONE) == (
        Stall("“Book”: given back 2 times", "press {retry_task} to try again"),
    )
    scene.steer(Retry(book))
    assert plan_stalls(scene.plan, EVERYONE) == ()


def test_a_paused_or_finished_plan_is_not_stalled() -> None:
    scene = Scene(synthesis="none")
    scene.steer(Pause(True))
    assert plan_stalls(scene.plan, living()) == ()
    scene.steer(Pause(False))
    draft = scene.draft("ada", "Book", "Pack")
    scene.accept(draft)
    for step in range(2):
        scene.result(scene.claim("finn", scene.task(draft, step).id))
    assert scene.plan.done
    assert plan_stalls(scene.plan, living()) == ()


def test_equal_reasons_are_told_once() -> None:
    scene = Scene()
    draft = scene.draft("ada", "Book", "Pack", "Go")
    scene.accept(draft)
    assert plan_stalls(scene.plan, living("ada", "cleo dora")) == (
        Stall("“Book” and 2 more: no executor", "press {add_executor} to add one"),
    )


def test_counts_follow_the_live_tree() -> None:
    scene = Scene()
    assert counts(scene.plan)["leaves"] == 0
    draft = scene.draft("ada", "Book", "Pack")
    rival = scene.draft("bob", "Fly", "Swim", "Walk")
    assert counts(scene.plan)["voting"] == 1
    scene.accept(draft)
    scene.vote("cleo", rival)  # its tasks aren't live
    scene.result(scene.claim("finn", scene.task(draft, 0).id))
    scene.claim("gus", scene.task(draft, 1).id)
    figures = counts(scene.plan)
    assert (figures["leaves"], figures["done"], figures["working"], figures["voting"]) == (2, 1, 1, 0)
    assert (figures["drafts"], figures["ops"]) == (2, 9)
    assert [task.title for task in live_tasks(scene.plan)] == ["Plan a trip", "Book", "Pack"]
