"""Reading an endpoint's answer: the message of a chat completion, or what is wrong with it, by class."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from ecomlab.episode.messages import MOST_NAME, without_thinking
from ecomlab.evaluation.contestant import Usage
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.task import Message

SHOWN = 300
"""Most characters of a server's text in a reason."""
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size_error|context_window_exceeded"
    r"|context (?:length|window|size)\b[^.]{0,40}\bexceed|exceed[^.]{0,60}\bcontext (?:length|window|size|limit)"
    r"|(?:longer|larger|greater|too large)\b[^.]{0,60}\bcontext (?:length|window|size)"
    r"|maximum (?:context|prompt|model) length(?: is| of|:)? ?\d|(?:prompt|input)[^.]{0,30} is too long"
    r"|input (?:length|tokens)\b[^.]{0,30}\bexceed|exceeds the maximum number of tokens|exceeded model token limit"
    r"|`inputs` must have less|tokens \+ `max_new_tokens` must be|range of input length should be"
    r"|reduce the length of the (?:messages|prompt|input)|too many (?:input |total )?tokens",
    re.IGNORECASE,
)
"""Wordings of an overflow: OpenAI, vLLM, SGLang, TGI, llama.cpp, ollama, LM Studio, and hosts such as Together,
Fireworks, Mistral, Google and xAI."""
_PACE = re.compile(r"per (?:minute|min|day|hour)\b|rate.?limit|please wait", re.IGNORECASE)
"""Wordings of a limit of tokens that is no model's, but an account's in some time."""
UNREADABLE = "unreadable_call"
"""Name of no tool, for a call of which the endpoint tells none: hosts refuse a conversation with an empty one."""
BROKEN_OFF = ("error", "abort")
"""Reasons to end an answer that are the server's, as routers and vLLM give them."""
_LONE = re.compile("[\ud800-\udfff]")


class EndpointFailure(Exception):
    """A request that failed for reasons that are not the model's; `kind` is the class of an unscored episode."""

    def __init__(
        self, kind: str, why: str, again: bool = False, wait: float | None = None, status: int = 200
    ) -> None:
        super().__init__(why)
        self.kind = kind
        self.again = again
        """Whether another try may succeed."""
        self.wait = wait
        """Seconds to wait before it, where the server says so."""
        self.status = status
        """HTTP status of the answer, 200 where there was none."""
        self.usage = Usage()
        """What the tries cost, tokens apart."""


class ContextOverflow(Exception):
    """A conversation that is longer than the model's context, as the endpoint says."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.usage = Usage()
        """What the tries cost, tokens apart."""


@dataclass(frozen=True)
class Answer:
    """One answer of the model."""

    message: Message
    """Assistant message as the endpoint has it: content and calls, nothing checked beyond that it is an object."""
    finish: str
    """The endpoint's reason to end: stop, length, tool_calls, content_filter, ...; "" where it gives none."""
    refused: bool
    """Whether the endpoint marks it as a refusal."""
    empty: bool
    """Whether nothing is in it but reasoning that the endpoint set apart."""
    usage: Usage
    """Tokens of this answer, as the endpoint counts them; no seconds and retries yet."""
    fingerprint: str = ""
    """The endpoint's name for the weights and software that answered, where it gives one."""


def read_completion(body: bytes, settings: EndpointSettings) -> Answer:
    """Read a chat completion. Raises EndpointFailure for a body that is none, and for another model's."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise EndpointFailure("no completion", f"not JSON: {shown(body)}", again=True) from None
    if isinstance(found, dict) and found.get("error") and not found.get("choices"):
        raise _told(found["error"], body)
    choices = found.get("choices") if isinstance(found, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if choice is None or not isinstance(message, dict) or message.get("role", "assistant") != "assistant":
        raise EndpointFailure("no completion", f"no chat completion: {shown(body)}", again=True)
    _check_model(found.get("model"), settings)
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) else ""
    if finish in BROKEN_OFF:
        raise EndpointFailure("server error", f"the answer ends with {finish!r}: {shown(body)}", again=True)
    refusal = message.get("refusal")
    said = {"role": "assistant", "content": _content(message.get("content"))}
    if isinstance(refusal, str) and refusal and not said["content"]:
        said["content"] = clean(refusal)
    if message.get("tool_calls"):
        said["tool_calls"] = clean(message["tool_calls"])
    elif message.get("function_call"):  # one call, as OpenAI had it before there were several
        said["tool_calls"] = [{"type": "function", "function": clean(message["function_call"])}]
    refused, name = bool(refusal) or finish == "content_filter", found.get("system_fingerprint")
    fingerprint = clean(name)[:SHOWN] if isinstance(name, str) else ""
    reasoned = message.get("reasoning_content") or message.get("reasoning")
    empty = bool(reasoned) and not (str(said["content"]).strip() or said.get("tool_calls"))
    return Answer(said, finish, refused, empty, _usage(found.get("usage")), fingerprint)


def _told(error: Any, body: bytes) -> Exception:
    """Make the failure of an error that came with status 200, as routers send it."""
    code = error.get("code") if isinstance(error, dict) else None
    status = int(code) if isinstance(code, int | str) and str(code).isdecimal() else 500
    return failure_of(status, body, came="an error with status 200")


def failure_of(
    status: int, body: bytes, wait: float | None = None, moved: bytes = b"", came: str = ""
) -> Exception:
    """Make the failure of an answer with a status other than 200; `moved` is the address that it names, if any, and
    `came` says how it came where `status` stands only in its body."""
    text = body.decode("utf-8", "replace")[:20_000]
    # llama.cpp and ollama say it with 500 as well
    if (status in (400, 413, 422) or status >= 500) and _OVERFLOW.search(text) and not _PACE.search(text):
        return ContextOverflow(shown(body))
    why = f"{came or f'status {status}'}: {shown(body)}" + (
        f"; it asks to wait {wait:,.0f} s" if wait else ""
    )
    if status == 429:
        return EndpointFailure("rate limit", why, again=True, wait=wait, status=status)
    if status >= 500 or status == 408:
        return EndpointFailure("server error", why, again=True, wait=wait, status=status)
    if moved and 300 <= status < 400:
        why = f"status {status}: it has moved to {shown(moved)}"
    return EndpointFailure("request refused", why, status=status)


def rejected_call(status: int, body: bytes) -> bytes | None:
    """Make the completion that an endpoint withheld because it could not take the model's call, as Groq does (status
    400, `tool_use_failed`): one with a malformed call, of what the model wrote as far as that is told, or of no tool
    where its arguments were not those of the tool's schema. None for any other answer."""
    if status != 400 or b"tool_use_failed" not in body:
        return None
    try:
        error = json.loads(body)["error"]
        if error["code"] != "tool_use_failed":
            return None
        why = str(error.get("message"))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    wrote = "{}" if "validation failed" in why else error.get("failed_generation") or why
    call = {"type": "function", "function": {"name": UNREADABLE, "arguments": str(wrote)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()


def shown(body: bytes) -> str:
    """Show the beginning of a server's text on one line."""
    return " ".join(body[: 4 * SHOWN].decode("utf-8", "replace").split())[:SHOWN] or "nothing"


def clean(value: Any) -> Any:
    """Copy a JSON value with lone surrogates, which no file can hold, replaced."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value) if not value.isascii() else value
    if isinstance(value, list):
        return [clean(entry) for entry in value]
    if isinstance(value, dict):
        return {clean(key): clean(entry) for key, entry in value.items()}
    return value


def numbered(message: Message) -> Message:
    """Copy a message so that each of its calls has an id, and none the same: results are told apart by them."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    copied: list[Any] = []
    taken: set[str] = set()
    for number, call in enumerate(calls):
        name = call.get("id") if isinstance(call, dict) else None
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or name in taken:
            name = next(free for i in count(number) if (free := f"call_{i}") not in taken)
        taken.add(name)
        copied.append({**call, "id": name} if isinstance(call, dict) else call)
    return {**message, "tool_calls": copied}


def _content(content: Any) -> Any:
    """Read text that may come in parts. What is no text is left for the episode to judge."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        content = "".join(part for part in parts if isinstance(part, str))
    return without_thinking(clean(content)) if isinstance(content, str) else content


def _check_model(name: Any, settings: EndpointSettings) -> None:
    """Raise EndpointFailure where an answer says that another model gave it. A date behind a name is the same model."""
    if not isinstance(name, str) or not name or name in (settings.model, settings.answers_as):
        return
    if re.fullmatch(re.escape(settings.model) + r"[-@:]\d{4}[\d-]*", name):
        return
    raise EndpointFailure("other model", f"the answer is of model {name[:200]!r}, not {settings.model!r}")


def _usage(usage: Any) -> Usage:
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    prompt = _count(usage.get("prompt_tokens"))
    return Usage(
        prompt_tokens=prompt,
        cached_tokens=min(prompt, _count(cached)),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def _count(number: Any) -> int:
    return number if type(number) is int and 0 <= number < 2**40 else 0
