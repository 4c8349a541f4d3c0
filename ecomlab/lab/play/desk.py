"""The seat as a widget for notebooks: choose, talk, call tools by forms, submit, and see the outcome."""

import asyncio
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import ipywidgets

from ecomlab.customer.llm import Chat
from ecomlab.envs.registry import COLLECTIONS, ENVIRONMENTS
from ecomlab.lab.paths import shown
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.forms import Entries, Form
from ecomlab.lab.play.seat import RUNS, Outcome, Seat
from ecomlab.markup import conversation, elements
from ecomlab.markup.elements import Html, element, table
from ecomlab.markup.entries import Entry
from ecomlab.markup.record import number
from ecomlab.markup.results import plain, result_in_lines
from ecomlab.suggest import UnknownEnvironmentError

EXPECTED = (ValueError, UnknownEnvironmentError, OSError)
"""Errors that people are told; any other is a mistake of ours, and is shown with its traceback."""
WAITING = "These calls wait and go together with the next call or words"
MOMENT = 0.25
"""Seconds from Enter until a field is read: the browser sends the key first, and the value right behind it."""


class Desk(ipywidgets.VBox):
    """A seat that can be seen. Episodes are saved under `out`; `customer` is an endpoint that words the customer."""

    def __init__(
        self, choice: Choice | None = None, out: str | Path = RUNS, customer: Chat | None = None
    ) -> None:
        self.seat, self.out = Seat(customer), out
        self.seat.choice = choice or Choice()
        self.views: dict[str, FormView] = {}
        self.customer, self.talk, self.left, self.held, self.waiting, self.over = _pages(6)
        self.wrong_choice, self.wrong_words, self.wrong_call, self.wrong_save = _pages(4)
        self.form, self.picks = ipywidgets.VBox(), ipywidgets.VBox()
        self._make_controls()
        # the customer's words first; the whole conversation is below what can be done now
        said = _grid([self.words, self.send_words], "1fr auto")
        calling = [self.tool, self.form, self.wrong_call, self.buttons, self.waiting, self.draft_buttons]
        left = ipywidgets.VBox([self.customer, said, self.wrong_words, self.picks, self.talk])
        right = ipywidgets.VBox([self.left, *calling, self.held])
        both = _grid([left, right], "repeat(auto-fit, minmax(420px, 1fr))", "flex-start")
        fields = [self.env, self.difficulty, self.seed, self.reset_button]
        choosing = [_grid(fields, "repeat(auto-fill, minmax(150px, 1fr))"), self.key, self.wrong_choice]
        self.ended = ipywidgets.VBox([self.over, ipywidgets.HBox([self.save]), self.wrong_save])
        super().__init__([ipywidgets.HTML(_style()), *choosing, self.ended, both])
        self.add_class("ecomlab-desk")
        self._begin(lambda: self.seat.reset(self.seat.choice))

    def __repr__(self) -> str:
        chosen = self.seat.choice
        return f"<Desk: {chosen.env}, d = {chosen.difficulty}, seed {chosen.seed}>"

    def _make_controls(self) -> None:
        envs = dict.fromkeys([*(env for env in COLLECTIONS["C8"] if env in ENVIRONMENTS), *ENVIRONMENTS])
        whole = ipywidgets.BoundedIntText
        self.env = _labelled(ipywidgets.Dropdown(options=list(envs), description="environment"))
        self.difficulty = _labelled(whole(min=0, max=10**6, description="difficulty"))
        self.seed = _labelled(whole(min=0, max=2**53, description="seed"))
        key = "key of this episode; or paste another's and press Enter"
        self.key = _text(self.reset_to_key, description=key)
        self.reset_button = _button("Reset", self.reset, "Begin this episode", "primary")
        words = "write to the customer, Enter sends"
        self.words = _text(self.say, description=words, placeholder="Is there anything else I should know?")
        self.send_words = _button("Send", self.say, "Send what you wrote to the customer")
        self.tool = _labelled(ipywidgets.Dropdown(description="tool"))
        self.tool.observe(lambda _: self._show_form(), "value")
        self.call = _button("Call", self.send, "Call the tool, with the calls that wait", "primary")
        wait = partial(self._do, self.wrong_call, lambda: self.seat.add(*self._call()))
        self.add = _button("Add to the message", wait, "Let this call wait, to go with others")
        self.clear = _button("Clear", lambda: self.views[self.tool.value].clear(), "Empty the form's fields")
        self.buttons = ipywidgets.HBox([self.call, self.add, self.clear])
        send = partial(self._do, self.wrong_call, self.seat.send)
        drop = partial(self._do, self.wrong_call, lambda: self.seat.draft.clear())
        sending = _button("Send what waits", send, "Send the calls")
        self.draft_buttons = ipywidgets.HBox([sending, _button("Drop what waits", drop, "Drop the calls")])
        self.save = _button("Save the episode", self.keep, "Write it where `ecomlab eval` reads it")

    # --- what people do ---

    def reset(self) -> None:
        """Begin the episode that is chosen, with the catalog and the axes of the last one."""
        had = self.seat.choice
        chosen = Choice(self.env.value, self.difficulty.value, self.seed.value, had.axes, had.catalog)
        self._begin(lambda: self.seat.reset(chosen))

    def reset_to_key(self) -> None:
        """Begin the episode of the key in its field."""
        self._begin(lambda: self.seat.reset_to(self.key.value))

    def say(self) -> None:
        """Send what is written to the customer."""
        if self._do(self.wrong_words, lambda: self.seat.say(self.words.value)):
            self.words.value = ""

    def send(self, tool: str | None = None) -> None:
        """Call a tool by its form, by default the one that is shown, together with the calls that wait."""
        self._do(self.wrong_call, lambda: self.seat.call(*self._call(tool)))

    def pick(self, ids: Mapping[str, str]) -> None:
        """Enter the ids of a row in every form that takes them, but in lists only of the one that is shown."""
        for name, view in self.views.items():
            view.fill(view.form.picked(view.entries, ids, lists=name == self.tool.value))

    def keep(self) -> None:
        """Save the episode, and say where."""
        if self._do(self.wrong_save, lambda: self.seat.save(self.out)):
            path = shown(self.seat.save())
            told = f"saved in {path}; read it with: ecomlab eval --rescore {path}"
            self.wrong_save.value = _line(told, "saved")

    def _call(self, tool: str | None = None) -> tuple[str, Entries]:
        view = self.views[tool or self.tool.value]
        return view.form.tool.name, view.entries

    def _begin(self, draw: Callable[[], None]) -> None:
        self.wrong_choice.value = _line("drawing the episode; a new catalog takes a while ...", "busy")
        if not self._do(self.wrong_choice, draw):
            return
        chosen, forms = self.seat.choice, self.seat.forms
        self.env.value, self.difficulty.value, self.seed.value = chosen.env, chosen.difficulty, chosen.seed
        self.key.value = self.seat.key
        self.views = {name: FormView(form, partial(self.send, name)) for name, form in forms.items()}
        self.tool.options, self.tool.value = list(self.views), next(iter(self.views))
        self._show_form()
        for text in (self.words, self.wrong_words, self.wrong_call, self.wrong_save):
            text.value = ""

    def _do(self, place: ipywidgets.HTML, act: Callable[[], object]) -> bool:
        """Act and show the seat. What goes wrong is said in `place`, so that nothing is hidden in a log."""
        problem = None
        try:
            act()
            self.show()
        except EXPECTED as error:
            problem = element("p", error, role="alert")
        except Exception:
            problem = element("pre", traceback.format_exc(), role="alert")
        place.value = _block("problem", problem) if problem else ""
        return problem is None

    # --- what they see ---

    def show(self) -> None:
        """Show the seat as it is."""
        seat, last = self.seat, self.seat.log[-1].number
        job = [element("summary", "Your task"), element("p", seat.job, class_="text")]
        task = element("details", *job, open=last == 0)
        asked = [element("p", f"at first: {seat.said[0]}", class_="quiet")] if len(seat.said) > 1 else []
        self.customer.value = _block("customer", element("p", seat.said[-1], class_="said"), *asked, task)
        self.left.value = _line(seat.left, "left")
        self.talk.value = _block("talk", element("div", *_turns(seat.log)))
        held = seat.holdings.items()
        self.held.value = "".join(_listed(name, lines or ["nothing yet"]) for name, lines in held)
        self.waiting.value = _listed(WAITING, seat.waiting) if seat.draft else ""
        self.picks.children = [row for entry in seat.log if entry.number == last for row in self._rows(entry)]
        for control in (self.words, self.send_words, self.call, self.add, self.tool):
            control.disabled = seat.done
        self.draft_buttons.layout.display = "" if seat.draft else "none"
        self.ended.layout.display = "" if seat.done else "none"
        self.over.value = _outcome(seat.outcome) if seat.done else ""

    def _show_form(self) -> None:
        self.form.children = [self.views[self.tool.value]] if self.tool.value in self.views else []

    def _rows(self, entry: Entry) -> list[ipywidgets.Widget]:
        """Lay out a result of the last message, an item a line; a button enters its ids in the forms."""
        if entry.result is None:
            return []
        found, rows = entry.result, list[ipywidgets.Widget]()
        told = {"call": entry, "problem": found.error, "notice": found.notice, "facts": plain(found.facts)}
        rows += [ipywidgets.HTML(_line(text, kind)) for kind, text in told.items() if text]
        for name, cards in found.groups:
            rows.append(ipywidgets.HTML(_line(name if cards else f"{name}: none", "call")))
            for card in cards:
                ids, row = ", ".join(card.ids.values()), ipywidgets.HTML(_line(card, "row"))
                pick = _button("Pick", partial(self.pick, card.ids), f"Enter {ids} in the forms")
                rows.append(_grid([pick, row], "auto 1fr", "flex-start") if ids else row)
        return rows


class FormView(ipywidgets.VBox):
    """The fields of a form, each labelled with the argument's name, required ones with a star. `send` is called when
    Enter is pressed in one."""

    def __init__(self, form: Form, send: Callable[[], None]) -> None:
        self.form, self.fields = form, dict[str, Any]()
        for name, one in form.fields.items():
            told = {"description": name.replace("_", " ") + " *" * one.required, "tooltip": one.about}
            if one.choices:
                field = _labelled(ipywidgets.Dropdown(options=["", *one.choices], value="", **told))
            else:
                field = _text(send, placeholder=one.about, **told)
            self.fields[name] = field
        fields = _grid(list(self.fields.values()), "repeat(auto-fill, minmax(210px, 1fr))")
        super().__init__([ipywidgets.HTML(_line(form.about, "about")), fields])
        self.add_class(f"ecomlab-form-{form.tool.name}")

    @property
    def entries(self) -> dict[str, str]:
        """The texts in the fields."""
        return {name: field.value for name, field in self.fields.items()}

    def fill(self, entries: Entries) -> None:
        """Set these fields."""
        for name, entry in entries.items():
            self.fields[name].value = entry

    def clear(self) -> None:
        """Empty all fields."""
        self.fill(dict.fromkeys(self.fields, ""))


def _pages(number: int) -> list[ipywidgets.HTML]:
    return [ipywidgets.HTML() for _ in range(number)]


def _grid(children: Sequence[ipywidgets.Widget], columns: str, align: str = "flex-end") -> ipywidgets.GridBox:
    layout = ipywidgets.Layout(grid_template_columns=columns, grid_gap="4px 12px", align_items=align)
    return ipywidgets.GridBox(children, layout=layout)


def _button(text: str, act: Callable[[], object], tooltip: str, style: str = "") -> ipywidgets.Button:
    wide = ipywidgets.Layout(width="auto")
    made = ipywidgets.Button(description=text, tooltip=tooltip, layout=wide, button_style=style)
    made.on_click(lambda _: act())
    return made


def _labelled(field: Any) -> Any:
    field.add_class("ecomlab-field")
    return field


def _text(act: Callable[[], None], **traits: Any) -> ipywidgets.Text:
    """Make a text field that calls `act` when Enter is pressed in it. Its value comes as a whole, else the last part of
    it may be held back."""
    made = _labelled(ipywidgets.Text(continuous_update=False, **traits))

    def heard(_: Any, content: Mapping[str, Any], __: Any) -> None:
        if content.get("event") == "submit":
            try:
                asyncio.get_running_loop().call_later(MOMENT, act)
            except RuntimeError:  # no browser: whoever drives the widget has set the value
                act()

    made.on_msg(heard)
    return made


# --- HTML: every text that comes from products, customers and people is escaped, and `$` is no formula ---


def _style() -> str:
    own = resources.files("ecomlab.lab.play").joinpath("desk.css").read_text("utf-8")
    return f"<style>{elements.style()}{own}</style>"


def _block(kind: str, *children: Any) -> str:
    classes = f"ecomlab ecomlab-seat ecomlab-{kind} mathjax_ignore tex2jax_ignore"
    return element("div", *children, class_=classes)


def _line(text: object, kind: str) -> str:
    return _block(kind, element("p", text, class_="text"))


def _listed(title: str, lines: Sequence[object]) -> str:
    return _block("listed", element("b", title), element("ul", *(element("li", one) for one in lines)))


def _turns(entries: Sequence[Entry]) -> list[Html]:
    """Show what happened, by turn; of a result, each row is a line."""
    shown = []
    for turn, its in groupby(entries, key=lambda entry: entry.number):
        shown.append(element("p", f"turn {turn}" if turn else "opening", class_="quiet"))
        for entry in its:
            came = "\n".join(result_in_lines(entry.call.result or "")) if entry.call else entry.text
            who = element("b", entry if entry.call else entry.who)
            shown.append(element("div", who, element("p", came, class_="text"), class_=f"speech {entry.who}"))
    return shown


def _outcome(found: Outcome) -> str:
    """Show the reward with its parts and the reason, the truth, and how the reference player did it."""
    score, theirs = found.trajectory.score, found.reference
    verdict = "unscored" if score.unscored else "correct" if score.correct else "not correct"
    value = "" if score.unscored else f", reward {score.value:.3f} of at most 0.900"
    way = f"The reference player, who sees what you saw: reward {theirs.score.value:.3f}"
    return _block(
        "outcome",
        element("h2", verdict + value, class_=f"verdict {verdict.replace(' ', '-')}"),
        conversation.score(score.parts, score.weights, number(score.value), score.why),
        element("b", "What was wanted"),
        table(("about", "when", "what"), [(fact.about, fact.what, fact.text) for fact in found.truth]),
        element("details", element("summary", way), conversation.alone(theirs.messages)),
    )
