"""Gymnasium: every environment as `gymnasium.make("ecomlab/CART-v4")`, with text for actions and observations.

Importing this module registers them; `gymnasium.make("ecomlab.bridges.gymnasium:ecomlab/CART-v4")` does both.
"""

import json
from typing import Any

import gymnasium
from gymnasium import spaces

from ecomlab.bridges.common import outcome, read_message, text_since
from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.messages import MOST_TEXT
from ecomlab.seeding import TRAINING_SEEDS

MOST_SEEN = 10_000_000
"""Maximum number of characters of an observation."""


class AnyText(spaces.Text):
    """Text of any characters. A charset that names all of Unicode takes seconds and 100 MB; samples are ASCII."""

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length


class ShoppingEnv(gymnasium.Env[str, str]):
    """One environment of ecomlab.

    An action is an assistant message: JSON in OpenAI's format, or a model's raw output. The observation is JSON:
    first an object with `messages` (system prompt and the customer's opening) and `tools` (OpenAI schemas), then the
    list of messages that came back. The reward is 0 until the episode is over and then the score's value; `info` has
    the task's key, and at the end also the score, the reason in words and the end.

    Running out of turns is part of the task, so it terminates the episode; `truncated` is always false.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (declared by Gymnasium as it is)

    def __init__(
        self,
        env: str,
        difficulty: int = 0,
        size: int = 20_000,
        strict: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Load the generated shop of `size` products; `strict` ends an episode at the first format error."""
        if render_mode not in (None, "ansi"):
            raise ValueError(f"render_mode must be 'ansi' or None, not {render_mode!r}")
        self.env_id, self.difficulty, self.strict, self.render_mode = env, difficulty, strict, render_mode
        self.shop: Shop = load_shop(size)
        self.action_space = AnyText(max_length=MOST_TEXT, min_length=0)
        self.observation_space = AnyText(max_length=MOST_SEEN)
        self.episode: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin the task of this seed; without a seed, draw one of the training tasks.

        `options` may give another `difficulty`, and `overrides`, axes by name. Raises what `make_task` raises, and
        ValueError for any other option.
        """
        super().reset(seed=seed)
        if others := (options or {}).keys() - {"difficulty", "overrides"}:
            raise ValueError(f"options takes difficulty and overrides, not {', '.join(sorted(others))}")
        given = {"difficulty": self.difficulty, "overrides": None, **(options or {})}
        if seed is None:
            seed = int(self.np_random.integers(len(TRAINING_SEEDS)))
        task = make_task(self.env_id, given["difficulty"], seed, self.shop, given["overrides"])
        self.episode = Episode(task, self.shop, strict=self.strict)
        first = {"messages": self.episode.messages, "tools": self.episode.tools}
        return json.dumps(first, ensure_ascii=False), {"task": task.key._asdict()}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one assistant message. An infrastructure error raises: it is never a reward."""
        episode = self._running()
        before = len(episode.messages) + 1
        turn = episode.act(read_message(action))
        info: dict[str, Any] = {"task": episode.task.key._asdict()}
        reward = 0.0
        if turn.done:
            reward = episode.score().value
            info |= outcome(episode)
        return text_since(episode.messages, before), reward, turn.done, False, info

    def render(self) -> str | None:
        """Write the conversation so far, one line per message."""
        if self.render_mode is None:
            return None
        return "\n".join(f"{message['role']}: {_said(message)}" for message in self._running().messages)

    def _running(self) -> Episode:
        if self.episode is None:
            raise gymnasium.error.ResetNeeded("there is no episode yet; call reset first")
        return self.episode


def _said(message: dict[str, Any]) -> str:
    calls = [f"{c['function']['name']}({c['function']['arguments']})" for c in message.get("tool_calls", ())]
    return " ".join([*filter(None, [message["content"]]), *calls])


def register() -> list[str]:
    """Register every environment with Gymnasium, including those loaded from files, and return their ids."""
    ids = []
    for name, environment in ENVIRONMENTS.items():
        ids.append(f"ecomlab/{name}-v{environment.version}")
        if ids[-1] not in gymnasium.registry:
            gymnasium.register(
                ids[-1], f"{__name__}:ShoppingEnv", kwargs={"env": name}, nondeterministic=False
            )
    return ids


register()
