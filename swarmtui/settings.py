"""Every setting, documented where it's declared: type, limits, default, and what `config init` writes above it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta

from swarmtui import paths
from swarmtui.files import expanded
from swarmtui.plan.ops import DEFAULT_SKILL, MAX_DEPTH, InvalidOp, Policy, check_policy, need_of

ENV_PREFIX = "SWARMTUI_"
DEFAULT_PRESET = "laptop"
DEFAULT_KEY_VARIABLE = "SWARMTUI_API_KEY"
AgentRole = Literal["decomposer", "scorer", "executor"]


class ConfigError(ValueError):
    """A setting is wrong: `str()` is one line that names it, where it stands, and what would be right."""


def _doc(text: str, **limits: Any) -> Meta:
    return Meta(description=text, **limits)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A table of the config file. Each setting's text is what `config init` writes above it."""


class SwarmConfig(Section, frozen=True):
    """The network: who can hear us, and whom we look for."""

    name: Annotated[
        str,
        _doc(
            "Peers meet in a swarm by its name. Letters, digits, dot, dash and underscore.",
            pattern=r"^[A-Za-z0-9._-]+\Z",
            max_length=64,
        ),
    ] = "home"
    listen: Annotated[
        str,
        _doc(
            'Where to listen: "local" (127.0.0.1: nothing leaves this machine), "lan" (every address of this machine),'
            " or an IP address. On a network that others use, set a secret."
        ),
    ] = "local"
    port: Annotated[int, _doc("TCP port of the first peer; 0: any free port.", ge=0, le=65_535)] = 0
    join: Annotated[
        tuple[str, ...],
        _doc('Addresses of peers to dial, as the detail of "you" shows one: "/ip4/192.0.2.7/tcp/4001/p2p/12D3Koo…".'),
    ] = ()
    mdns: Annotated[bool, _doc("Find peers on the local network by multicast DNS.")] = True
    secret: Annotated[
        str,
        _doc(
            "Only peers with the same secret can join. Empty: anyone who reaches the port can.",
            max_length=1_000,
        ),
    ] = ""

    def listen_addresses(self) -> list[str]:
        """Return the IP addresses to listen on; "lan" means every address of this machine."""
        if self.listen == "lan":
            return ["0.0.0.0"]
        return ["127.0.0.1" if self.listen == "local" else self.listen]

    def __repr__(self) -> str:
        shown = {**msgspec.structs.asdict(self), "secret": "…" if self.secret else ""}
        return f"SwarmConfig({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


class AgentsConfig(Section, frozen=True):
    """The agents that start with the program. On the screen d, s and e add more."""

    decomposers: Annotated[int, _doc("How many agents split tasks into steps.", ge=0, le=64)] = 2
    scorers: Annotated[int, _doc("How many agents judge the drafts.", ge=0, le=64)] = 3
    executors: Annotated[int, _doc("How many agents do the work.", ge=0, le=64)] = 2
    skills: Annotated[
        tuple[str, ...], _doc("Skills of the executors: they take only steps that need one of these.")
    ] = (DEFAULT_SKILL,)
    decomposer_model: Annotated[
        str, _doc("A model of their own for the decomposers, named as in `model`; empty: that of all.")
    ] = ""
    scorer_model: Annotated[str, _doc("The same for the scorers.")] = ""
    executor_model: Annotated[str, _doc("The same for the executors.")] = ""

    def roles(self) -> list[tuple[AgentRole, int]]:
        """Return how many agents of each role to start."""
        return [("decomposer", self.decomposers), ("scorer", self.scorers), ("executor", self.executors)]


class PolicyConfig(Section, frozen=True):
    """How a plan is decided. It travels in the goal, so it holds for everyone in the plan."""

    quorum: Annotated[
        int | str,
        _doc('Approvals that accept a draft: "majority", "two-thirds" or "all" of the scorers, or a number.'),
    ] = "majority"
    rivals: Annotated[int, _doc("Drafts wanted per task, each from another angle.", ge=1, le=8)] = 2
    rounds: Annotated[int, _doc("Refinements from critiques before the scorers settle for the best.", ge=0, le=8)] = 2
    fan_out: Annotated[tuple[int, int], _doc("Fewest and most steps of a draft, within 2 and 16.")] = (2, 6)
    max_depth: Annotated[
        int, _doc("Tasks this far below the goal aren't split any more (the goal stands at 0).", ge=1, le=MAX_DEPTH)
    ] = 3
    pass_mark: Annotated[int, _doc("Mean mark, 0 to 100, from which a scorer approves a draft.", ge=0, le=100)] = 60
    patience_s: Annotated[
        int, _doc("Seconds without a decision after which scorers settle for the best draft.", ge=1, le=86_400)
    ] = 120
    lease_s: Annotated[
        int, _doc("Seconds of silence after which another executor may take over a claimed task.", ge=1, le=86_400)
    ] = 60
    attempts: Annotated[int, _doc("Executors that may give up on a task before it has failed.", ge=1, le=100)] = 3
    settle_ms: Annotated[
        int,
        _doc(
            "Least milliseconds between an executor's claim and its result, to see whether another was earlier.",
            ge=0,
            le=60_000,
        ),
    ] = 1_000
    skills: Annotated[tuple[str, ...], _doc("Skills that steps may ask for.")] = (DEFAULT_SKILL,)
    synthesis: Annotated[
        Literal["none", "root", "all"],
        _doc('Whose results are merged into one text: "root" (the finished plan), "all" branches, or "none".'),
    ] = "root"

    def need(self, scorers: int) -> int:
        """Return how many approvals the quorum means among so many scorers (at least 1)."""
        return self.quorum if isinstance(self.quorum, int) else need_of(self.quorum, scorers)

    def to_policy(self, scorers: int) -> Policy:
        """Return the policy that goes into a goal, the quorum reckoned from a number of scorers.

        Raises:
            ConfigError: settings contradict each other.
        """
        need = self.need(scorers)
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "quorum"}
        policy = Policy(need=need, of=max(1, scorers, need), **fields)
        try:
            check_policy(policy)
        except InvalidOp as error:
            raise ConfigError(str(error)) from None
        return policy


class LlmConfig(Section, frozen=True):
    """llama.cpp. One child process serves every agent of this machine."""

    threads: Annotated[int, _doc("Threads that compute; 0: one per physical core.", ge=0, le=512)] = 0
    context: Annotated[int, _doc("Tokens that one request may take, prompt and answer; 0: fitting.", ge=0)] = 0
    slots: Annotated[int, _doc("Requests that are computed together; 0: fitting.", ge=0, le=64)] = 0
    folder: Annotated[str, _doc("Folder of your own GGUF files; empty: `swarmtui paths` shows the usual one.")] = ""
    key_variable: Annotated[
        str,
        _doc(
            "Environment variable that holds the key which a model server wants; it's sent to that server alone.",
            pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z|^\Z",
        ),
    ] = DEFAULT_KEY_VARIABLE
    gpu_layers: Annotated[
        int, _doc("Layers of the model on the GPU, if llama.cpp was compiled for one; -1: all of them.", ge=-1)
    ] = 0


class RunConfig(Section, frozen=True):
    """`swarmtui run`: the swarm without a screen."""

    stall_s: Annotated[
        int, _doc("Seconds that a plan may stand still before `run` gives up with exit code 3.", ge=1, le=86_400)
    ] = 120


class Config(Section, frozen=True):
    """swarmtui's settings."""

    preset: Annotated[str, _doc("Settings to start from: `swarmtui config presets` lists them.")] = DEFAULT_PRESET
    model: Annotated[
        str,
        _doc(
            'The model of all agents: "auto" (the bundled one), part of the name of a GGUF that `swarmtui models`'
            ' lists, a path, the address of a model server ("http://127.0.0.1:8080/v1", with "#model" if it has'
            ' several), or "scripted" (no model: canned answers for demos and tests).',
            min_length=1,
        ),
    ] = "auto"
    seed: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        _doc("A number makes the agents' choices repeatable; without one they differ each time."),
    ] = None
    data_dir: Annotated[str, _doc("Folder of journals, keys and the log; empty: the platform's usual one.")] = ""
    swarm: SwarmConfig = SwarmConfig()
    agents: AgentsConfig = AgentsConfig()
    policy: PolicyConfig = PolicyConfig()
    llm: LlmConfig = LlmConfig()
    run: RunConfig = RunConfig()
    keys: Annotated[
        dict[str, str],
        _doc('Keys by action, e.g. `new_goal = "ctrl+n"`. `?` on the screen shows the actions\' names.'),
    ] = {}

    @property
    def data(self) -> Path:
        """The data folder as a path."""
        return paths.data_dir(self.data_dir)

    @property
    def joins(self) -> bool:
        """Whether it's somebody's swarm that is joined: plans may come from there."""
        return bool(self.swarm.join)

    def model_of(self, role: str) -> str:
        """Return the model of a role's agents."""
        return getattr(self.agents, f"{role}_model", "") or self.model

    def key(self) -> str:
        """Return the key for a model server, from the environment; '' if there's none."""
        return os.environ.get(self.llm.key_variable, "") if self.llm.key_variable else ""

    @property
    def models_dir(self) -> Path:
        """The folder of the person's own GGUF files."""
        return expanded(self.llm.folder) if self.llm.folder else paths.models_dir()


class Setting(msgspec.Struct, frozen=True):
    """A declared setting."""

    key: str
    """Dotted: "swarm.port"."""
    kind: Any
    """Its type, with limits."""
    default: Any
    doc: str

    @property
    def env(self) -> str:
        """Its environment variable."""
        return ENV_PREFIX + self.key.replace(".", "_").upper()


def _declared(section: type[Section], prefix: str = "") -> Iterable[Setting]:
    hints = get_type_hints(section, include_extras=True)
    for field in msgspec.structs.fields(section):
        kind = hints[field.name]
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _declared(kind, f"{prefix}{field.name}.")
        else:
            meta = next(part for part in get_args(kind) if isinstance(part, Meta))
            default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            yield Setting(prefix + field.name, kind, default, meta.description or "")


SETTINGS: dict[str, Setting] = {setting.key: setting for setting in _declared(Config)}
"""Every setting by its dotted key, in the order of the file."""
