"""Contestants from the names and objects that the command line and notebooks take as players."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ecomlab import own_code
from ecomlab.customer.llm import Chat
from ecomlab.evaluation.endpoint.contestant import EndpointContestant
from ecomlab.evaluation.endpoint.settings import endpoint_from_toml
from ecomlab.evaluation.evaluation import Contestant
from ecomlab.evaluation.local import check_decoding
from ecomlab.evaluation.scripted import (
    PLAYERS,
    FunctionContestant,
    ScriptedContestant,
    known_scripts,
)
from ecomlab.models.load import is_ordinary, load_policy, sources
from ecomlab.models.policy import Policy, PolicyError, device_of, serve_it
from ecomlab.settings import ConfigError, Settings
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.samplers.cached import Limits

LONGEST, TURN = 32_768, 2_048
"""Default token limits of an episode and of a turn, unless the model's own are lower. The reference player's longest
episode, a journey at d = 12, has 24,356 of Qwen's tokens (experiments/tokens); 2,048 is the usual `max_tokens` of an
endpoint."""
BATCH = 16
"""Concurrent episodes of an ordinary model: 16 x 24,000 tokens of an 8B model are 57 GB of keys and values."""
LIMITS = {"turn_tokens": "turn", "episode_tokens": "episode", "context_tokens": "context"}
"""Names of the token limits in settings, and in `Limits`."""


LOADING = ("dtype", "lora_rank", "thinking")
"""Settings with which an ordinary model is loaded."""


@dataclass(frozen=True, kw_only=True)
class Playing:
    """How a player plays."""

    decoding: str | None = None
    """For weights: sampled (the default) or greedy."""
    device: str | None = None
    """For weights. Default: cuda for ordinary models if there is one, cpu for starters."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the settings of an endpoint's file, or `LocalSettings`."""
    customer: Chat | None = None
    """The endpoint that words the customer; None for the templates."""


class LocalSettings(Settings):
    """Settings of weights in this process. The default of each is the player's own."""

    temperature: float | None = Field(None, gt=0)
    batch: int | None = Field(None, ge=1)
    strict: bool | None = None
    environment_workers: int | None = Field(None, ge=0)
    dtype: str | None = None
    lora_rank: int | None = Field(None, ge=0)
    thinking: bool | None = None
    turn_tokens: int | None = Field(None, ge=1)
    episode_tokens: int | None = Field(None, ge=1)
    context_tokens: int | None = Field(None, ge=1)


def contestant_of(player: Any, shop: "Shop", envs: Sequence[str], playing: Playing = Playing()) -> Contestant:
    """Make a contestant of a player, for these environments. A player is

    - a script's name: "reference", "courteous", "oracle", ..., or an attacker such as "say nothing";
    - a starter's name, a folder with weights ("./reference" is a folder), or "owner/name" of a Hugging Face model;
    - a TOML file with an endpoint's settings;
    - a function of messages and tools that returns a message, sync or async, an object or a class with that call, or
      "my_agent.py:agent";
    - a `Policy`, or a contestant.

    Raises ValueError (such as ConfigError and PolicyError) for an unknown name, TypeError for another object.
    """
    if playing.decoding:
        check_decoding(playing.decoding)
    if not isinstance(player, str | Path):
        return _of_object(player, playing)
    name = str(player)
    if Path(name).suffix == ".toml":
        if playing.decoding or playing.device:
            option = "decoding (use the setting temperature=0)" if playing.decoding else "device"
            raise ValueError(f"an endpoint has no {option}, because its model runs elsewhere; leave it out")
        return EndpointContestant(endpoint_from_toml(Path(name), playing.settings), playing.customer)
    if own_code.is_named(name):
        _check_plain(name, playing)
        if not callable(found := own_code.named(name)):
            raise ValueError(
                f"{name} is {found!r}; name a function of messages and tools, or a class of such"
            )
        return FunctionContestant(found, name.rpartition(":")[2], playing.customer)
    if name in PLAYERS:
        _check_plain(name, playing)
        return ScriptedContestant(name, customer=playing.customer)
    if Path(name).suffix == ".py":
        raise ValueError(f"name a function of {name}, such as {name}:agent")
    starters = known_starters()
    if name in starters or Path(name).is_dir() or is_ordinary(name):
        return _local(name, shop, envs, playing)
    if name in known_scripts():
        _check_plain(name, playing)
        return ScriptedContestant(name, customer=playing.customer)
    raise ValueError(
        f"{unknown('player', name, [*PLAYERS, *starters])}; or give an attacker such as 'say nothing', a folder "
        "with a model, owner/name, my_agent.py:agent, or a TOML file with an endpoint's url and model; people play "
        "with `ecomlab play --player human`"
    )


def _of_object(player: Any, playing: Playing) -> Contestant:
    if isinstance(player, Policy):
        return _of_policy("policy", player, False, playing)
    if hasattr(player, "identity") and hasattr(player, "play"):
        made: Contestant = player
        return made
    made = FunctionContestant(player, customer=playing.customer)
    _check_plain(made.name, playing)
    return made


def _check_plain(name: str, playing: Playing) -> None:
    """Raise ValueError for settings of weights and endpoints."""
    if playing.decoding or playing.device or playing.settings:
        raise ValueError(f"{name} is code and has no decoding, device or settings; leave these out")


def name_of(player: Any, contestant: Contestant) -> str:
    """Return a player's name in tables; an endpoint's is its `name`, or its model."""
    settings = getattr(contestant, "settings", None)
    if settings is not None:
        return str(getattr(settings, "name", "") or settings.model)
    given = str(player) if isinstance(player, str | Path) and not own_code.is_named(str(player)) else ""
    return given or str(getattr(contestant, "name", "") or contestant.identity.get("model", "player"))


def as_known(name: str) -> str:
    """Spell the name of a script or a starter as it is known; any other, and that of a file or folder, stays."""
    known = {one.casefold(): one for one in (*PLAYERS, *known_starters(), "human")}
    return name if Path(name).exists() else known.get(name.casefold(), name)


def known_starters() -> list[str]:
    return [folder.name for one in sources() if one.folder.is_dir() for folder in one.folder.iterdir()]


def _local(name: str, shop: "Shop", envs: Sequence[str], playing: Playing) -> Contestant:
    """Make the contestant of weights in this process. Raises ValueError, such as PolicyError."""
    ordinary = is_ordinary(name)
    device_of(playing.device, ordinary)
    loading = {key: value for key, value in playing.settings.items() if key in LOADING}
    try:
        LocalSettings(**playing.settings)
    except ConfigError as error:
        raise ValueError(f"--set: {error}") from None
    if loading and not ordinary:
        raise ValueError(f"{name} is a starter and has no {', '.join(loading)}; leave that out")
    if playing.decoding == "greedy" and "temperature" in playing.settings:
        raise ValueError("greedy decoding has no temperature; leave one of the two out")
    return _of_policy(name, load_policy(name, shop, envs, **loading), ordinary, playing)


def _of_policy(name: str, policy: Policy, ordinary: bool, playing: Playing) -> Contestant:
    from ecomlab.evaluation.local import LocalContestant
    from ecomlab.models.samplers.cached import Limits, is_sampled_exactly

    given = LocalSettings(**playing.settings).model_dump(exclude_unset=True, exclude={*LOADING})
    tokens = {LIMITS[name]: given.pop(name) for name in LIMITS if name in given}
    limits = _limits_for(policy.model, tokens) if ordinary else Limits(**tokens)
    if ordinary:
        given.setdefault("batch", BATCH)
        if not is_sampled_exactly(policy.model, limits.context):
            raise PolicyError(f"our sampler does not sample {name} exactly; {serve_it(name)}")
    if ordinary or playing.device:
        policy.model.to(device_of(playing.device, ordinary))
    return LocalContestant(
        name, policy, playing.decoding or "sampled", limits=limits, customer=playing.customer, **given
    )


def _limits_for(model: Any, given: Mapping[str, int]) -> "Limits":
    """Complete the token limits of an ordinary model. Raises PolicyError if the context exceeds the model's own."""
    from ecomlab.models.samplers.cached import Limits

    known = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    context = given.get("context", min(known or LONGEST, LONGEST))
    if known is not None and context > known:
        raise PolicyError(
            f"the model's context is {known} tokens, less than the limit of {context}; use --set context_tokens={known}"
        )
    return Limits(**{"turn": min(TURN, context), "episode": context, "context": context, **given})
