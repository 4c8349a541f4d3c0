"""The customer's words by a language model: any endpoint may reword what the customer says, and say what a question
asks for that the parser does not understand. It decides nothing: what it writes is checked and recorded."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ecomlab.customer.rewording import Check, tidy
from ecomlab.settings import Strict, read_toml
from ecomlab.task import Message


@dataclass(frozen=True)
class Answered:
    """An answer of an endpoint that says what it cost."""

    text: str
    usage: Mapping[str, int]
    """Numbers of requests, retries and tokens, as `evaluate.contestant.Usage` names them."""


class NoAnswerError(Exception):
    """An error for an endpoint that gave no answer, which says what the tries cost."""

    def __init__(self, why: str, usage: Mapping[str, int]) -> None:
        super().__init__(why)
        self.usage = usage
        """As that of `Answered`."""


Chat = Callable[[list[Message]], str | Answered]
"""An endpoint: chat messages in, the text of the answer out, with its cost where that is known. It raises where there
is none: no connection, a time-out, no completion. It may be called from several threads at once."""

FAILURES = 3
"""Failures in a row after which an episode no longer asks its endpoint: a dead one does not cost a time-out a turn."""
LABELS = 3
"""Most slots that a question may be labelled with."""
LINES, LINE = 12, 500
"""Last lines of the conversation that the endpoint is shown, and the most characters of each."""
MOST = 10_000
"""Most characters of an answer that are looked at and recorded."""
AGAIN = " again"
"""End of the task of an exchange that asks for a line once more after a refusal, with the reason."""
NONE = "none"
"""Label of a question for nothing that is listed."""
FAILED, UNASKED = "no answer", "not asked"


class RecordError(Exception):
    """A recording of an endpoint's answers that is not of this episode; the text says where."""


class _Prompt(Strict):
    system: str
    user: str


class _Rewrite(_Prompt):
    again: str
    why: dict[str, str]


class _File(Strict):
    rewrite: _Rewrite
    label: _Prompt


_PROMPTS = read_toml(Path(__file__).with_name("llm.toml"), _File)


@dataclass(frozen=True)
class Exchange:
    """What an endpoint was asked for once, and what came of it."""

    task: str
    """rewrite, opening or label; "rewrite again" or "opening again" after a refusal."""
    given: str
    """The template's text, or the question."""
    answer: str | None
    """The text that came back, its end cut off where it is too long; None where none did."""
    refused: str = ""
    """Why it was not used: the reason of a `Refusal`, "no answer", "not asked", "unknown label" or "too many labels";
    "" where it was."""
    detail: str = ""
    """What was wrong in words."""
    used: str = ""
    """The text that was said, or the labels; "" where none was used."""
    seconds: float = 0.0
    """Time waited for the answer, in seconds."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """What the answer cost, as far as the endpoint says so."""


class Wording:
    """The endpoint's part in one episode: rewords each act, labels questions, and records every exchange.

    With `recorded` exchanges it takes their answers in place of an endpoint's, and checks them anew.
    """

    def __init__(self, chat: Chat | None = None, recorded: Iterable[Mapping[str, Any]] | None = None) -> None:
        if (chat is None) == (recorded is None):
            raise ValueError("Wording takes a chat function or recorded exchanges, one of them")
        if chat is not None and not callable(chat):
            raise TypeError(
                f"a customer's endpoint is a function of messages that returns text, not {chat!r}"
            )
        self._chat = chat
        self._recorded = deque(recorded) if recorded is not None else None
        self._said: deque[str] = deque(maxlen=LINES)
        self._failures = 0
        self.exchanges: list[Exchange] = []

    def hears(self, text: str) -> None:
        """Take note of what the agent has said to the customer."""
        self._said.append(f"Assistant: {text[:LINE]}")

    def says(self, text: str) -> None:
        """Take note of what the customer has said."""
        self._said.append(f"Customer: {text[:LINE]}")

    def opening(self, template: str, check: Check) -> str:
        """Reword an opening; the template where the rewording is refused."""
        return self._reworded("opening", template, check)

    def reply(self, templates: Sequence[str], verbatim: Sequence[str], check: Check) -> str:
        """Reword the acts of one message, one by one: `templates` holds a text for each, `verbatim` what must be in
        it as it is, or "". The template stands for each that is refused, and for all that together say more."""
        begun = len(self.exchanges)
        texts = [
            self._reworded("rewrite", template, check, fixed)
            for template, fixed in zip(templates, verbatim, strict=True)
        ]
        whole, said = " ".join(templates), " ".join(texts)
        if said != whole and check.misread(said, whole):
            said, why = whole, "beside the message's other acts"
            self.exchanges[begun:] = [
                replace(one, refused="read otherwise", detail=why, used="") if one.used else one
                for one in self.exchanges[begun:]
            ]
        return said

    def label(self, question: str, options: Mapping[str, str]) -> tuple[str, ...]:
        """Say which slots a question asks for, of `options`, slots by the name that is shown; none where the endpoint
        says so or names what is not listed."""
        prompt = _PROMPTS.label
        asked = prompt.user.format(options=", ".join(options), question=question[:LINE])
        one = self._asked("label", question, [prompt.system, asked])
        why, answer = one.refused, one.answer or ""
        named = [name.strip(" .\"'").lower() for name in answer.replace("\n", ",").split(",")]
        named = list(dict.fromkeys(name for name in named if name))
        known = {name.lower(): slot for name, slot in options.items()}
        detail = ""
        if not why and named != [NONE]:
            unknown = [name for name in named if name not in known]
            why = (
                "unknown label" if unknown or not named else "too many labels" if len(named) > LABELS else ""
            )
            detail = ", ".join(unknown)[:LINE]
        slots = () if why or named == [NONE] else tuple(known[name] for name in named)
        self.exchanges.append(replace(one, refused=why, detail=detail or one.detail, used=", ".join(slots)))
        return slots

    def _reworded(self, task: str, template: str, check: Check, verbatim: str = "") -> str:
        prompt = _PROMPTS.rewrite
        said = "\n".join(self._said) or "(it begins with this line)"
        before = ""
        for name in (task, task + AGAIN):
            asked = prompt.user.format(said=said, before=before, line=template)
            one = self._asked(name, template, [prompt.system, asked])
            if one.refused:
                self.exchanges.append(one)
                return template
            text = tidy(one.answer, template, check.lexicon)
            refusal = check.refusal(text, template, task == "opening", verbatim)
            used = "" if refusal else str(text)
            reason, detail = refusal or ("", "")
            self.exchanges.append(replace(one, refused=reason, detail=detail[:LINE], used=used))
            if used:
                return used
            shown = prompt.why.get(reason, reason).format(detail=detail[:LINE])
            before = prompt.again.format(answer=str(one.answer)[:LINE], why=shown)
        return template

    def _asked(self, task: str, given: str, prompt: Sequence[str]) -> Exchange:
        """Ask the endpoint, or look its answer up in the recording; `refused` says why there is none."""
        if self._recorded is not None:
            return self._looked_up(task, given)
        if self._failures >= FAILURES:
            return Exchange(task, given, None, UNASKED)
        assert self._chat is not None
        system, user = prompt
        started = time.monotonic()
        try:
            answer = self._chat([{"role": "system", "content": system}, {"role": "user", "content": user}])
        except Exception as error:  # whatever it is, the template is said: wording never costs an episode
            answer, usage, why = None, error.usage if isinstance(error, NoAnswerError) else {}, str(error)
        else:
            usage, why = answer.usage if isinstance(answer, Answered) else {}, "it gave no text"
        seconds = round(time.monotonic() - started, 3)
        text = answer.text if isinstance(answer, Answered) else answer
        if not isinstance(text, str):
            self._failures += 1
            why = _writable(why)[:LINE]
            return Exchange(task, given, None, FAILED, why, seconds=seconds, usage=usage)
        self._failures = 0
        return Exchange(task, given, _writable(text[:MOST]), seconds=seconds, usage=usage)

    def _looked_up(self, task: str, given: str) -> Exchange:
        assert self._recorded is not None
        one = self._recorded.popleft() if self._recorded else {}
        if (one.get("task"), one.get("given")) != (task, given):
            has = f"{one.get('task')} of {one.get('given')!r}" if one else "no further answer"
            raise RecordError(f"the recording has {has} where {task} of {given!r} was asked for")
        kept = {name: one[name] for name in ("answer", "seconds", "usage") if name in one}
        if isinstance(one.get("answer"), str):
            return Exchange(task, given, **kept)
        missing = UNASKED if one.get("refused") == UNASKED else FAILED
        return Exchange(
            task, given, **{**kept, "answer": None}, refused=missing, detail=one.get("detail", "")
        )


def _writable(text: str) -> str:
    """Leave out of a text what cannot be written as UTF-8."""
    return text.encode("utf-8", "ignore").decode("utf-8")
