"""The local swarm as the screen uses it: real libp2p on loopback, the scripted model."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest

from swarmtui.config import Config, load
from swarmtui.paths import prompts_dir
from swarmtui.plan.ops import Note, Pause
from swarmtui.plan.state import State
from swarmtui.swarm import Swarm, SwarmError
from swarmtui.view import AgentView, SwarmView

DEADLINE_S = 180.0


def settings(folder: Path, **flags: object) -> Config:
    own = {"model": "scripted", "seed": 7, "data_dir": str(folder), "swarm.mdns": False, "swarm.name": "test"}
    return load(own | flags, {}, None, "tiny")


def until(swarm: Swarm, true: Callable[[SwarmView], object]) -> SwarmView:
    """The first picture that satisfies, or fail."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        view = swarm.latest
        if true(view):
            return view
        time.sleep(0.02)
    raise AssertionError(f"not within {DEADLINE_S} s: {swarm.latest}")


def said(future: Future[str]) -> str:
    return future.result(DEADLINE_S)


def agents(view: SwarmView, role: str) -> list[AgentView]:
    return [agent for agent in view.agents if agent.role == role]


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[Swarm]:
    one = Swarm(settings(tmp_path))
    one.start()
    yield one
    assert one.stop()


def test_a_goal_becomes_a_finished_plan(swarm: Swarm) -> None:
    said(swarm.give_goal("Plan a party", "for nine"))
    view = until(swarm, lambda v: v.plan and v.plan.done and v.complete)
    plan = view.plan
    assert plan is not None and plan.mine and plan.title == "Plan a party" and plan.detail == "for nine"
    leaves = [task for task in plan.tasks.values() if not task.branch]
    assert leaves and all(task.output and task.result_by for task in leaves)
    assert plan.tasks[plan.root].output
    assert view.scripted and view.model == "scripted"
    assert view.gossip[0].text == "you gave the goal “Plan a party”"
    assert swarm.summary["calls"]["work"] >= len(leaves)
    # The observer's peer isn't among the agents, and nobody has heard of it.
    assert len(view.agents) == 8 and not agents(view, "observer")


def test_a_command_whose_future_is_given_up_is_carried_out_all_the_same(swarm: Swarm) -> None:
    assert not swarm.give_goal("Plan a party").cancel()
    until(swarm, lambda v: [title for _, title in v.plans] == ["Plan a party"])
    said(swarm.give_goal("Plan another"))


def test_agents_that_come_at_once_get_different_names(swarm: Swarm) -> None:
    for future in [swarm.add_agent("scorer") for _ in range(4)]:
        said(future)
    view = until(swarm, lambda v: len(v.agents) == 12)
    assert len({agent.name for agent in view.agents}) == 12


def test_agents_that_come_at_once_are_not_more_than_may(swarm: Swarm, monkeypatch: pytest.MonkeyPatch) -> None:
    until(swarm, lambda v: len(v.agents) == 8)  # of which one is the operator
    monkeypatch.setattr("swarmtui.swarm.crew.MAX_LOCAL_AGENTS", 9)
    outcomes = [future.exception(DEADLINE_S) for future in [swarm.add_agent("scorer") for _ in range(4)]]
    assert sorted(str(error) for error in outcomes) == ["9 agents run here"] * 2 + ["None"] * 2


def test_agents_come_rest_and_go(swarm: Swarm) -> None:
    until(swarm, lambda v: len(v.agents) == 8)
    assert said(swarm.add_agent("scorer", name="zara")) == "scorer zara has joined"
    with pytest.raises(SwarmError, match="called zara"):
        said(swarm.add_agent("scorer", name="zara"))
    view = until(swarm, lambda v: len(agents(v, "scorer")) == 4)
    zara = next(agent for agent in view.agents if agent.name == "zara")
    said(swarm.pause_agent(zara.peer, True))
    until(swarm, lambda v: any(a.peer == zara.peer and a.state == "paused" for a in v.agents))
    assert said(swarm.kill(zara.peer)) == "zara has left"
    until(swarm, lambda v: all(a.peer != zara.peer for a in v.agents))
    with pytest.raises(SwarmError, match="another program"):
        said(swarm.kill(zara.peer))
    bob = agents(swarm.latest, "decomposer")[0]
    assert said(swarm.crash(bob.peer)) == f"{bob.name} has crashed"
    until(swarm, lambda v: [agent.state for agent in agents(v, "decomposer")] == ["gone", "running"])
    said(swarm.kill(bob.peer))
    you = agents(swarm.latest, "operator")[0]
    with pytest.raises(SwarmError, match="program itself"):
        said(swarm.kill(you.peer))


def test_a_swarm_elsewhere_is_joined_by_the_address_that_it_shows(swarm: Swarm, tmp_path: Path) -> None:
    other = Swarm(settings(tmp_path / "elsewhere"))
    other.start()
    try:
        (address,) = agents(until(other, lambda v: agents(v, "operator")), "operator")[0].addresses[:1]
        with pytest.raises(SwarmError, match="this program"):
            said(other.connect(address))
        with pytest.raises(SwarmError, match="isn't a full address"):
            said(swarm.connect("/ip4/127.0.0.1/tcp/4001"))
        said(swarm.connect(address))
        until(swarm, lambda v: len(agents(v, "operator")) == 2)
        said(other.give_goal("Plan a party"))
        assert not until(swarm, lambda v: v.plan and v.plan.done).plan.mine
    finally:
        assert other.stop()


def test_a_crashed_executors_claim_is_taken_over(tmp_path: Path) -> None:
    swarm = Swarm(settings(tmp_path, **{"policy.lease_s": 3}))
    swarm.start()
    try:
        said(swarm.give_goal("Plan a party"))
        view = until(swarm, lambda v: v.plan and v.plan.counts["working"])
        assert view.plan is not None
        held = next(task for task in view.plan.tasks.values() if task.state is State.CLAIMED)
        holder = next(agent for agent in view.agents if agent.name == held.holder)
        other = next(agent for agent in agents(view, "executor") if agent != holder)
        assert held.status == holder.name
        said(swarm.crash(holder.peer))
        until(swarm, lambda v: v.plan and v.plan.tasks[held.id].status == f"{holder.name} is silent")
        view = until(swarm, lambda v: v.plan and v.plan.done)
        assert view.plan is not None
        assert view.plan.tasks[held.id].result_by == other.name
        assert any(line == f"{other.name} took over “{held.title}”" for _, line in view.plan.tasks[held.id].history)
    finally:
        assert swarm.stop()


def test_a_plan_without_executors_says_so_and_goes_on_when_one_comes(tmp_path: Path) -> None:
    swarm = Swarm(settings(tmp_path, **{"agents.executors": 0}))
    swarm.start()
    try:
        said(swarm.give_goal("Plan a party"))
        view = until(swarm, lambda v: v.plan and v.plan.stalled)
        assert view.plan is not None and view.plan.stalled[0].reason.endswith(": no executor")
        said(swarm.add_agent("executor"))
        until(swarm, lambda v: v.plan and v.plan.done)
    finally:
        assert swarm.stop()


def test_steering_reaches_the_plan(swarm: Swarm) -> None:
    said(swarm.give_goal("Plan a party"))
    view = until(swarm, lambda v: v.plan)
    assert view.plan is not None
    said(swarm.steer(view.plan.id, Pause(True)))
    until(swarm, lambda v: v.plan and v.plan.paused)
    said(swarm.steer(view.plan.id, Note(view.plan.root, "no [b]nuts[/b]")))
    until(swarm, lambda v: v.plan and v.plan.tasks[v.plan.root].notes == ("no [b]nuts[/b]",))
    said(swarm.steer(view.plan.id, Pause(False)))
    until(swarm, lambda v: v.plan and v.plan.done)
    with pytest.raises(SwarmError, match="isn't held"):
        said(swarm.show_plan(b"\0" * 32))


def test_an_unfinished_plan_is_taken_up_again_and_a_finished_one_is_not(tmp_path: Path) -> None:
    config = settings(tmp_path, **{"agents.executors": 0})
    first = Swarm(config)
    first.start()
    said(first.give_goal("Plan a party"))
    view = until(first, lambda v: v.plan and v.plan.counts["ready"])
    assert first.stop()
    keys = {agent.peer for agent in view.agents}

    second = Swarm(settings(tmp_path))
    second.start()
    stalls = set()
    until(second, lambda v: stalls.update(v.plan.stalled if v.plan else ()) or len(v.agents) == 8)
    assert not stalls  # who is still being started is counted on
    again = until(second, lambda v: v.plan and v.plan.done and len(v.agents) == 8)
    assert again.plan is not None and view.plan is not None and again.plan.id == view.plan.id
    assert keys < {agent.peer for agent in again.agents}
    assert not any(agent.fault for agent in again.agents)
    calls = second.summary["calls"]
    assert "draft" not in calls and "judge" not in calls  # what was decided stays decided
    assert second.stop()

    third = Swarm(settings(tmp_path))
    third.start()
    until(third, lambda v: len(v.agents) == 8)
    assert third.latest.plan is None
    (kept,) = third.latest.kept
    assert (kept.id, kept.title) == (again.plan.id, "Plan a party")
    assert third.stop()


def test_a_plan_left_behind_is_taken_up_when_it_is_asked_for(tmp_path: Path) -> None:
    first = Swarm(settings(tmp_path, **{"agents.executors": 0}))
    first.start()
    said(first.give_goal("Plan a party"))
    old = until(first, lambda v: v.plan and v.plan.counts["ready"]).plan
    assert first.stop()
    assert old is not None

    second = Swarm(settings(tmp_path), resume=False)
    second.start()
    said(second.give_goal("Plan a fair"))
    view = until(second, lambda v: v.plan and v.plan.done)
    assert [title for _, title in view.plans] == ["Plan a fair"]
    assert [plan.id for plan in view.kept] == [old.id]
    assert "taken up again" in said(second.show_plan(old.id))
    again = until(second, lambda v: v.plan and v.plan.id == old.id and v.plan.done)
    assert again.kept == ()
    assert [title for _, title in again.plans] == ["Plan a party", "Plan a fair"]
    assert again.plan is not None and set(old.tasks) == set(again.plan.tasks)
    assert not any(agent.fault for agent in again.agents)
    assert second.stop()


def test_two_programs_on_one_data_folder_do_not_share_a_voice(tmp_path: Path, swarm: Swarm) -> None:
    with_it = Swarm(settings(tmp_path))
    with_it.start()
    mine = {agent.peer for agent in until(swarm, lambda v: len(v.agents) >= 8).agents if agent.local}
    theirs = {agent.peer for agent in until(with_it, lambda v: len(v.agents) >= 8).agents if agent.local}
    assert with_it.stop()
    assert not mine & theirs


def test_agents_of_another_program_are_heard_well_though_only_gateways_meet(tmp_path: Path, swarm: Swarm) -> None:
    other = Swarm(settings(tmp_path))
    other.start()
    try:
        for each in (swarm, other):
            view = until(each, lambda v: sum(not agent.local for agent in v.agents) == 8)
            assert {agent.state for agent in view.agents} == {"running"}
            assert {agent.local for agent in agents(view, "executor")} == {True, False}
            assert len({agent.name for agent in view.agents}) == len(view.agents)
            assert {(agent.name, agent.local) for agent in agents(view, "operator")} == {
                ("you", True),
                ("operator", False),
            }
    finally:
        assert other.stop()


def test_stopping_leaves_nothing_behind(tmp_path: Path) -> None:
    process = psutil.Process()
    threads, files, children = threading.active_count(), process.num_fds(), process.children()
    before = set(threading.enumerate())
    swarm = Swarm(settings(tmp_path))
    swarm.start()
    said(swarm.give_goal("Plan a party"))
    assert swarm.stop()
    assert swarm.error is None
    for thread in set(threading.enumerate()) - before:
        thread.join(DEADLINE_S)  # trio's workers end after ten idle seconds
    assert threading.active_count() <= threads
    assert process.num_fds() <= files
    assert set(process.children()) <= set(children)
    with pytest.raises(SwarmError, match="isn't running"):
        said(swarm.give_goal("Plan another"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network namespace")
def test_a_machine_without_any_network_still_plans_and_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "swarmtui", "run", "Plan a party", "--model", "scripted", "--preset", "tiny"]
    done = subprocess.run(
        ["unshare", "--net", *command, "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "no network, not even the loopback interface" in done.stderr
    assert done.stdout.startswith("# Plan a party")


def test_a_model_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    swarm = Swarm(settings(tmp_path, model=str(tmp_path / "none.gguf")))
    with pytest.raises(SwarmError) as caught:
        swarm.start()
    assert "none.gguf" in str(caught.value)
    assert swarm.stop()


def test_own_prompts_are_read_and_a_fault_in_them_is_said_first(tmp_path: Path) -> None:
    folder = prompts_dir()
    folder.mkdir(parents=True)
    (folder / "executor.toml").write_text("sistem = 'x'\n")
    swarm = Swarm(settings(tmp_path))
    with pytest.raises(SwarmError, match="sistem") as caught:
        swarm.start()
    assert str(folder) in caught.value.remedy
    assert swarm.stop()
