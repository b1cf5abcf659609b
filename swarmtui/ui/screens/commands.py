"""What the keys of the main screen do to the swarm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from textual.dom import DOMNode

from swarmtui.files import WriteError, write_whole
from swarmtui.goals import parse_goal
from swarmtui.plaintext import clean
from swarmtui.plan.export import to_json, to_markdown
from swarmtui.plan.narrative import plural
from swarmtui.plan.ops import MAX_TEXT, AnyAct, Note, Pause, Pick, Retry, SetPolicy, Veto
from swarmtui.plan.state import State
from swarmtui.ui.screens import forms
from swarmtui.ui.screens.dialogs import Confirm, Field, Form, Values
from swarmtui.ui.screens.goal import GoalForm
from swarmtui.ui.screens.picker import ModelPicker
from swarmtui.ui.screens.reading import GossipLog, Help
from swarmtui.ui.screens.window import T, Window
from swarmtui.ui.states import at_work, busy
from swarmtui.view import AgentView, ModelChoice, PlanView, Role, SwarmView, TaskView

if TYPE_CHECKING:
    from swarmtui.ui.actions import Keys, Panel
    from swarmtui.ui.app import SwarmApp
    from swarmtui.ui.widgets.agents import AgentList
    from swarmtui.ui.widgets.detail import Detail
    from swarmtui.ui.widgets.plan_tree import PlanTree

STARTING = "The swarm is still starting: try again in a moment."


class Commands(DOMNode):
    """The part of the main screen that asks the swarm for something."""

    if TYPE_CHECKING:
        keys: Keys
        view: SwarmView | None
        panel: Panel
        plan_tree: PlanTree
        agents: AgentList
        detail: Detail

        def go_to(self, name: Panel) -> None: ...
        @property
        def detail_in_sight(self) -> bool: ...
        def action_end_filter(self) -> None: ...

    @property
    def swarm_app(self) -> SwarmApp:
        return cast("SwarmApp", self.app)

    def say(self, text: str, severity: str = "information") -> None:
        """Show a toast."""
        self.swarm_app.say(text, severity)

    def open_window(self, window: Window[T], then: Callable[[T | None], None] | None = None) -> None:
        """Open a window, unless one is open: a key typed fast twice may come here twice."""
        if self.swarm_app.screen is self.swarm_app.main:
            self.app.push_screen(window, then)

    # What the cursor is on

    def _plan(self) -> PlanView | None:
        plan = self.view.plan if self.view else None
        if plan is None and not self.swarm_app.started:
            self.say(STARTING, "warning")
        elif plan is None:
            self.say(f"There is no plan yet: press {self.keys.key('new_goal')} to give a goal.", "warning")
        return plan

    def _own_plan(self) -> PlanView | None:
        plan = self._plan()
        if plan is not None and not plan.mine:
            self.say("Only who gave this goal can steer its plan; from here you can watch and add agents.", "warning")
            return None
        return plan

    def _chosen_task(self) -> TaskView | None:
        task = self.plan_tree.chosen()
        if task is None:
            self.say("Choose a task in the plan first.", "warning")
        return task

    @property
    def on_agents(self) -> bool:
        """True where keys mean the agent under the cursor: in its list, and in its detail."""
        return self.panel == "agents" or (self.panel == "detail" and self.detail.agent is not None)

    def _agent(self) -> AgentView | None:
        """Return the agent to act on; asks the person to choose one if another panel has the focus."""
        if not self.on_agents:
            self.go_to("agents")
            self.say("Choose an agent, then press the key again.", "warning")
            return None
        agent = self.agents.agent()
        if agent is None:
            self.say("There is no agent here.", "warning")
        elif agent.state == "gone":
            self.say(f"{agent.name} is gone already.", "warning")
        elif not agent.local:
            self.say(f"{agent.name} lives in another program: only there can it be changed or ended.", "warning")
        else:
            return agent
        return None

    def _steer(self, plan: PlanView, act: AnyAct) -> None:
        self.swarm_app.ask(lambda swarm: swarm.steer(plan.id, act))

    # Plan

    def action_new_goal(self) -> None:
        self.open_goal()

    def open_goal(self, text: str = "") -> None:
        """Ask for a goal."""

        def give(values: Values | None) -> None:
            if values is not None:
                goal = parse_goal(values["goal"])
                self.swarm_app.ask(lambda swarm: swarm.give_goal(goal.title, goal.detail))

        self.open_window(GoalForm(self.swarm_app.told, text), give)

    def action_pick_draft(self) -> None:
        self._judge(Pick, "Pick")

    def action_veto_draft(self) -> None:
        self._judge(Veto, "Veto")

    def _judge(self, act: type[Pick] | type[Veto], word: str) -> None:
        plan, task = self._own_plan(), None
        if plan is not None:
            task = self._chosen_task()
        if plan is None or task is None:
            return
        # A draft that is out of sight isn't meant.
        draft = self.detail.draft() if self.detail_in_sight else None
        if draft is not None:
            self._steer(plan, act(proposal=draft.id))
        elif not task.drafts:
            self.say("This task has no drafts.", "warning")
        else:
            self.detail.show_task(plan, task)
            self.go_to("detail")
            self.detail.show_tab(1)
            self.say(f"Choose a draft, then press the key again to {word.casefold()} it.")

    def action_retry_task(self) -> None:
        plan, task = self._own_plan(), None
        if plan is not None:
            task = self._chosen_task()
        if plan is None or task is None:
            return
        act = Retry(task=task.id)
        if task.state is State.DONE:
            self._confirm(
                f"Throw away the result of “{task.title}”?", "It will be done again.", lambda: self._steer(plan, act)
            )
        else:
            self._steer(plan, act)

    def action_note_task(self) -> None:
        plan, task = self._own_plan(), None
        if plan is not None:
            task = self._chosen_task()
        if plan is None or task is None:
            return

        def check(values: Any) -> str:
            text = clean(values["text"]).strip()
            if not text:
                return "Write a word to the agents, or leave with esc."
            return f"{len(text):,} characters; a note may have {MAX_TEXT:,}." if len(text) > MAX_TEXT else ""

        def write(values: Values | None) -> None:
            if values is not None:
                self._steer(plan, Note(task=task.id, text=clean(values["text"]).strip()))

        fields = (Field("text", "", kind="text", hint="e.g. we travel with two small children"),)
        intro = f"About: {task.title}"
        if task.state is State.DONE:
            again = self.keys.key("retry_task")
            intro += f"\n\nIt's done already. After the note, {again} has it done again, minding it."
        self.open_window(Form("Note to the agents", fields, check, intro=intro, verb="send"), write)

    def action_policy(self) -> None:
        plan = self._own_plan()
        if plan is None or self.view is None:
            return
        scorers = sum(a.role == "scorer" and a.state not in ("gone", "leaving") for a in self.view.agents)

        def set_policy(values: Values | None) -> None:
            if values is not None:
                self._steer(plan, SetPolicy(policy=forms.read_policy(values, plan.policy, scorers)))

        check = forms.check_policy_with(plan.policy, scorers)
        intro = f"{plural(scorers, 'scorer')} here now. The new policy counts from now on."
        self.open_window(Form("Quorum and policy", forms.policy_fields(plan.policy), check, intro=intro), set_policy)

    def action_pause(self) -> None:
        if self.on_agents:
            agent = self._agent()
            if agent is not None:
                peer, on = agent.peer, agent.state != "paused"
                self.swarm_app.ask(lambda swarm: swarm.pause_agent(peer, on))
            return
        plan = self._own_plan()
        if plan is not None:
            self._steer(plan, Pause(on=not plan.paused))

    def action_copy(self) -> None:
        task = self.plan_tree.chosen()
        agent = self.detail.agent
        if self.on_agents and agent is not None and agent.addresses:
            self._copied(agent.addresses[0], "the address at which others can join")
        elif self.on_agents and agent is not None:
            self._copied(agent.tail or agent.peer, f"what {agent.name} writes" if agent.tail else "the peer id")
        elif task is not None:
            text = task.output or "\n\n".join(part for part in (task.title, task.detail) if part)
            self._copied(text, "the result" if task.output else "the task")
        else:
            self.say("There is nothing to copy.", "warning")

    def _copied(self, text: str, what: str) -> None:
        self.app.copy_to_clipboard(clean(text))
        self.say(f"Copied {what} ({len(text):,} characters), if your terminal allows it.")

    # Export

    def action_export(self) -> None:
        plan = self._plan()
        if plan is not None:
            form = Form(
                "Export", forms.export_fields(plan, Path.cwd()), forms.check_export, intro=plan.title, verb="write"
            )
            self.open_window(form, self._export)

    def _export(self, values: Values | None) -> None:
        if values is None:
            return
        path = forms.export_path(values)
        if path.is_file():
            self._confirm(f"{path.name} exists. Write over it?", str(path), lambda: self._write(values, path, True))
        else:
            self._write(values, path, False)

    def _write(self, values: Values, path: Path, force: bool) -> None:
        view = self.view
        if view is None or view.plan is None:
            return
        plan, agents = view.plan, view.agents

        def write() -> Path:
            if values["format"] == "json":
                return write_whole(path, to_json(plan, agents), force)
            return write_whole(path, to_markdown(plan, agents=agents, **forms.included(values)), force)

        async def run() -> None:
            try:
                self.say(f"Exported to {await asyncio.to_thread(write)}")
            except WriteError as error:
                self.say(f"Not exported: {error}.", "error")

        self.swarm_app.run_worker(run(), exit_on_error=False)

    # Agents

    def action_add_decomposer(self) -> None:
        self.swarm_app.ask(lambda swarm: swarm.add_agent("decomposer"))

    def action_add_scorer(self) -> None:
        self.swarm_app.ask(lambda swarm: swarm.add_agent("scorer"))

    def action_add_executor(self) -> None:
        self.swarm_app.ask(lambda swarm: swarm.add_agent("executor"))

    def action_form_decomposer(self) -> None:
        self._agent_form("decomposer")

    def action_form_scorer(self) -> None:
        self._agent_form("scorer")

    def action_form_executor(self) -> None:
        self._agent_form("executor")

    def _agent_form(self, role: Role) -> None:
        def add(values: Values | None) -> None:
            if values is not None:
                named = {key: values.get(key, "").strip() for key in ("name", "angle", "model")}
                skills = forms.skills(values)
                self.swarm_app.ask(lambda swarm: swarm.add_agent(role, skills=skills, **named))

        form = Form(
            f"New {role}", forms.agent_fields(role), forms.check_agent, verb="add", find=self.swarm_app.swarm.models
        )
        self.open_window(form, add)

    def action_choose_model(self) -> None:
        """In Agents the agent's model, elsewhere that of the agents to come."""
        agent = self._agent() if self.on_agents else None
        if agent is None and self.on_agents:
            return
        if agent is not None and not agent.model:
            self.say(f"{agent.name} uses no model.", "warning")
            return
        peer = agent.peer if agent is not None else ""

        def use(choice: ModelChoice | None) -> None:
            if choice is not None:
                self.say(f"Loading {choice.name} …")
                self.swarm_app.ask(lambda swarm: swarm.use_model(choice.spec, peer))

        title = f"Model of {agent.name}" if agent is not None else "Model of new agents"
        self.open_window(ModelPicker(title, self.swarm_app.swarm.models), use)

    def action_join_peer(self) -> None:
        def check(values: Any) -> str:
            return "" if values["address"].strip() else "Type or paste an address, or leave with esc."

        def join(values: Values | None) -> None:
            if values is not None:
                self.swarm_app.ask(lambda swarm: swarm.connect(values["address"].strip()))

        fields = (Field("address", "address", hint="/ip4/192.168.0.7/tcp/4001/p2p/12D3Koo…"),)
        copy = self.keys.key("copy")
        intro = f"The other program shows its address in the detail of “you”; {copy} copies it there."
        self.open_window(Form("Join a swarm", fields, check, intro=intro, verb="join"), join)

    def action_kill(self) -> None:
        agent = self._agent()
        if agent is None:
            return
        peer = agent.peer

        def kill() -> None:
            self.swarm_app.ask(lambda swarm: swarm.kill(peer))

        if busy(agent):
            self._confirm(f"End {agent.name}?", f"{at_work(agent)} That work is lost; another agent will do it.", kill)
        else:
            kill()

    def action_crash(self) -> None:
        agent = self._agent()
        if agent is not None:
            peer = agent.peer
            self.swarm_app.ask(lambda swarm: swarm.crash(peer))

    def _confirm(self, question: str, detail: str, then: Callable[[], object]) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                then()

        self.open_window(Confirm(question, detail), answered)

    # Program

    def action_gossip_log(self) -> None:
        def show(task: bytes | None) -> None:
            if task is not None:
                self.go_to("plan")
                found = self.plan_tree.select(task)
                if not found and self.plan_tree.filter:
                    self.action_end_filter()
                    found = self.plan_tree.select(task)
                if not found:
                    self.say("That task isn't part of the plan that is shown.", "warning")

        self.open_window(GossipLog(self.keys, lambda: self.swarm_app.swarm.latest), show)

    def action_palette(self) -> None:
        self.app.action_command_palette()

    def action_help(self) -> None:
        self.open_window(Help(self.keys))

    def action_suspend(self) -> None:
        self.app.action_suspend_process()

    def action_quit(self) -> None:
        self.swarm_app.ask_to_quit()
