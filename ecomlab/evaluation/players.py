"""Contestants by name, as the command line has them.

Endpoints and local weights live here, in `endpoint/` and `local.py`, and not in `ecomlab.players`: they play many
episodes at once and load models, where a player answers one conversation and is imported by its environment.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.customer.llm import Chat
from ecomlab.evaluation.contestant import Contestant
from ecomlab.evaluation.endpoint.contestant import EndpointContestant
from ecomlab.evaluation.endpoint.settings import endpoint_from_toml
from ecomlab.evaluation.scripted import PLAYERS, ScriptedContestant, known_scripts
from ecomlab.models.devices import device_of
from ecomlab.models.load import is_ordinary, load_policy, sources
from ecomlab.models.policy import PolicyError, serve_it
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.samplers.cached import Limits

LONGEST, TURN = 32_768, 2_048
"""Most tokens of an episode and of one turn, unless others are asked for, of a model that was made for more. The
reference player's longest episode, a journey at d = 12, has 24,356 of Qwen's (experiments/tokens); 2,048 is the usual
`max_tokens` of an endpoint."""
BATCH = 16
"""Episodes at once of an ordinary model: 16 x 24,000 tokens of an 8B are 57 GB of keys and values."""


def contestant_of(
    name: str,
    shop: "Shop",
    envs: Sequence[str],
    changes: Mapping[str, Any] | None = None,
    customer: Chat | None = None,
    **local: Any,
) -> Contestant:
    """Make the contestant that `name` names, for these environments.

    - a script: "reference", "courteous", "oracle", ..., or an attacker such as "say nothing"; "./reference": a folder;
    - a TOML file with an endpoint's settings, over which `changes` are laid;
    - a starter's name, a folder with a policy, a checkpoint or a Hugging Face model, or "owner/name". `local` is for
      these: decoding, temperature, limits, batch, device, and dtype, lora_rank, thinking for ordinary models. `limits`
      holds those of `Limits` that are not to be the usual ones.

    `customer` is the endpoint that words the customer, if any: see `endpoint.chat.customer_from_toml`.

    Raises ValueError: ConfigError, PolicyError, or for a name that is nothing of all these.
    """
    if Path(name).suffix == ".toml":
        return EndpointContestant(endpoint_from_toml(Path(name), changes), customer)
    if name in known_scripts():
        return ScriptedContestant(name, customer=customer)
    starters = _starters()
    if name in starters or Path(name).is_dir() or is_ordinary(name):
        return _local(name, shop, envs, customer, local)
    raise ValueError(
        f"{unknown('player', name, [*PLAYERS, *starters])}; an attacker such as 'say nothing', a folder with a model, "
        "owner/name, or a TOML file with an endpoint's url and model will do too"
    )


def as_known(name: str) -> str:
    """Spell the name of a script or a starter as it is known, whatever its case; any other, and one that is a folder,
    stays as it is."""
    known = {one.casefold(): one for one in (*known_scripts(), *_starters())}
    return name if Path(name).is_dir() else known.get(name.casefold(), name)


def _starters() -> list[str]:
    return [folder.name for one in sources() if one.folder.is_dir() for folder in one.folder.iterdir()]


def _local(
    name: str, shop: "Shop", envs: Sequence[str], customer: Chat | None, local: dict[str, Any]
) -> Contestant:
    """Make the contestant of weights in this process. Raises ValueError, PolicyError among them."""
    from ecomlab.evaluation.local import LocalContestant
    from ecomlab.models.samplers.cached import Limits, is_sampled_exactly

    ordinary, given = is_ordinary(name), local.pop("limits", {})
    device = device_of(local.pop("device", None), ordinary)
    chat = {key: local.pop(key) for key in ("dtype", "lora_rank", "thinking") if key in local}
    if chat and not ordinary:
        raise ValueError(f"{name} has no {', '.join(chat)}, which ordinary models have; leave that out")
    policy = load_policy(name, shop, envs, **chat)
    limits = Limits(**given)
    if ordinary:
        limits = _limits_for(policy.model, given)
        local.setdefault("batch", BATCH)
        if not is_sampled_exactly(policy.model, limits.context):
            raise PolicyError(f"our sampler does not sample {name} exactly; {serve_it(name)}")
    policy.model.to(device)
    return LocalContestant(name, policy, limits=limits, customer=customer, **local)


def _limits_for(model: Any, given: Mapping[str, int]) -> "Limits":
    """Complete the limits of an ordinary model by those that it was made for. Raises PolicyError for one that exceeds
    these."""
    from ecomlab.models.samplers.cached import Limits

    known = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    context = given.get("context", min(known or LONGEST, LONGEST))
    if known is not None and context > known:
        raise PolicyError(
            f"the model was made for {known} tokens, and an episode may have {context}; "
            f"take --set context_tokens={known}"
        )
    return Limits(**{"turn": min(TURN, context), "episode": context, "context": context, **given})
