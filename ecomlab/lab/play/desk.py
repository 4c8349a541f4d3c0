"""The seat as a widget for notebooks: choose, talk, call tools by forms, submit, and see the outcome."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import ipywidgets

from ecomlab.customer.llm import Chat
from ecomlab.lab.paths import shown
from ecomlab.lab.play import markup
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.fields import Chooser, FormView, OnEnter, grid
from ecomlab.lab.play.seat import RUNS, Seat, SeatError
from ecomlab.markup.results import Card, plain
from ecomlab.suggest import UnknownEnvironmentError

EXPECTED = (ValueError, UnknownEnvironmentError, OSError)
"""Errors that people are told; any other is a mistake of ours, and is shown with its traceback."""


class Desk(ipywidgets.VBox):
    """A seat that can be seen. Episodes are saved under `out`; `customer` is an endpoint that words the customer."""

    def __init__(
        self, choice: Choice | None = None, out: str | Path = RUNS, customer: Chat | None = None
    ) -> None:
        self.seat, self.out = Seat(customer), out
        self.views: dict[str, FormView] = {}
        self.chooser = Chooser(choice or Choice(), self.reset, self.reset_to_key)
        self.talk, self.about, self.held, self.waiting, self.over = (ipywidgets.HTML() for _ in range(5))
        self.wrong_choice, self.wrong_words, self.wrong_call, self.wrong_save = (
            ipywidgets.HTML() for _ in range(4)
        )
        self._make_controls()
        super().__init__(self._laid_out())
        self.add_class("ecomlab-desk")
        self.reset()

    def __repr__(self) -> str:
        chosen = self.seat.choice
        return f"<Desk: {chosen.env}, d = {chosen.difficulty}, seed {chosen.seed}>"

    def _make_controls(self) -> None:
        # One line, for Enter sends: a Textarea of ipywidgets tells nothing of Enter, and its value, in which a line
        # break could be seen, may be held back while the kernel is busy. A button instead costs two keys a message.
        self.words = ipywidgets.Text(
            description="write to the customer, Enter sends",
            placeholder="Is there anything else I should know?",
        )
        self.words.add_class("ecomlab-field")
        OnEnter(self.words, self.say)
        self.tool = ipywidgets.Dropdown(description="tool")
        self.tool.add_class("ecomlab-field")
        self.tool.observe(lambda _: self._show_form(), "value")
        self.form = ipywidgets.VBox()
        self.picks = ipywidgets.VBox()
        self.send_words = _button("Send", self.say, "Send what you wrote to the customer")
        self.call = _button("Call", self.send, "Call the tool, with the calls that wait (Enter in a field)")
        self.add = _button("Add to the message", self.wait, "Let this call wait, to go with others")
        self.send_draft = _button("Send what waits", self.send_waiting, "Send the calls that wait")
        self.take_back = _button("Take back", self.unwait, "Take back the last call that waits")
        self.clear = _button("Clear", self.empty, "Empty the form's fields")
        self.save = _button("Save the episode", self.keep, "Write it where `ecomlab eval` reads it")

    def _laid_out(self) -> list[ipywidgets.Widget]:
        said = grid([self.words, self.send_words], "1fr auto", "6px", align_items="flex-end")
        buttons = ipywidgets.HBox([self.call, self.add, self.clear])
        self.draft_buttons = ipywidgets.HBox([self.send_draft, self.take_back])
        talking = ipywidgets.VBox([self.talk, said, self.wrong_words, self.picks])
        calling = [self.about, self.held, self.tool, self.form, self.wrong_call, buttons, self.waiting]
        both = [talking, ipywidgets.VBox([*calling, self.draft_buttons])]
        columns = grid(both, "repeat(auto-fit, minmax(420px, 1fr))", "16px")
        self.ended = ipywidgets.VBox([self.over, ipywidgets.HBox([self.save]), self.wrong_save])
        return [ipywidgets.HTML(markup.style()), self.chooser, self.wrong_choice, columns, self.ended]

    # --- what people do ---

    def reset(self) -> None:
        """Begin the episode that is chosen."""
        with self._errors_in(
            self.wrong_choice, "drawing the episode; a catalog that is new takes a while ..."
        ):
            self.seat.reset(self.chooser.choice)
            self._begun()

    def reset_to_key(self) -> None:
        """Begin the episode of the key in its field."""
        with self._errors_in(self.wrong_choice, "drawing the key's episode ..."):
            self.seat.reset_to(self.chooser.key.value, self.chooser.choice.catalog)
            self._begun()

    def say(self) -> None:
        """Send what is written to the customer."""
        with self._errors_in(self.wrong_words):
            self.seat.say(self.words.value)
            self.words.value = ""
            self.show()

    def send(self, tool: str | None = None) -> None:
        """Call a tool by its form, by default the one that is shown, together with the calls that wait."""
        with self._errors_in(self.wrong_call):
            view = self._view(tool)
            self.seat.call(view.form.tool.name, view.entries)
            self.show()

    def wait(self) -> None:
        """Let the call of the form that is shown wait."""
        with self._errors_in(self.wrong_call):
            view = self._view()
            self.seat.add(view.form.tool.name, view.entries)
            self.show()

    def send_waiting(self) -> None:
        with self._errors_in(self.wrong_call):
            self.seat.send()
            self.show()

    def unwait(self) -> None:
        with self._errors_in(self.wrong_call):
            self.seat.take_back()
            self.show()

    def empty(self) -> None:
        """Empty the form that is shown."""
        with self._errors_in(self.wrong_call):
            view = self._view()
            view.fill(dict.fromkeys(view.fields, ""))

    def pick(self, ids: Mapping[str, str]) -> None:
        """Enter the ids of a card in every form that takes them, but in lists only of the one that is shown."""
        for name, view in self.views.items():
            view.fill(view.form.picked(view.entries, ids, lists=name == self.tool.value))

    def keep(self) -> None:
        """Save the episode, and say where."""
        with self._errors_in(self.wrong_save):
            path = self.seat.save(self.out)
            read = f"saved in {shown(path)}; read it with: ecomlab eval --rescore {shown(path)}"
            self.wrong_save.value = markup.line(read, "saved")

    def _view(self, tool: str | None = None) -> FormView:
        """Find the form of a tool, by default the one that is shown. Raises SeatError before the first episode."""
        view = self.views.get(tool or self.tool.value)
        if view is None:
            raise SeatError("there is no episode yet; choose one and reset")
        return view

    # --- what they see ---

    def _begun(self) -> None:
        """Show an episode that has just begun."""
        self.chooser.show(self.seat.choice, self.seat.key)
        self.views = {
            name: FormView(form, partial(self.send, name)) for name, form in self.seat.forms.items()
        }
        self.tool.options, self.tool.value = list(self.views), next(iter(self.views))
        self._show_form()
        self.words.value = self.wrong_words.value = self.wrong_call.value = self.wrong_save.value = ""
        self.show()

    def show(self) -> None:
        """Show the seat as it is."""
        seat, waiting = self.seat, "These calls wait and go together with the next call or words"
        self.talk.value = markup.talk(seat.episode.messages, seat.job)
        self.about.value = markup.left(seat.left)
        self.held.value = "".join(
            markup.listed(name, list(map(plain, lines)) or ["nothing yet"], "lines")
            for name, lines in seat.holdings.items()
        )
        self.waiting.value = markup.listed(waiting, seat.draft, "draft") if seat.draft else ""
        self._show_results()
        for control in (self.words, self.send_words, self.call, self.add, self.tool):
            control.disabled = seat.done
        self.draft_buttons.layout.display = "" if seat.draft else "none"
        self.ended.layout.display = "" if seat.done else "none"
        self.over.value = markup.outcome(seat.outcome) if seat.done else ""

    def _show_form(self) -> None:
        self.form.children = [self.views[self.tool.value]] if self.tool.value in self.views else []

    def _show_results(self) -> None:
        """Show the results of the last message as cards, each with a button that enters its ids in the forms."""
        rows: list[ipywidgets.Widget] = []
        for entry in self.seat.latest:
            if entry.result is not None:
                rows.append(ipywidgets.HTML(markup.came(entry)))
                for name, cards in entry.result.groups:
                    rows += [ipywidgets.HTML(markup.line(name, "group")), _cards(cards, self.pick)]
        self.picks.children = rows

    @contextmanager
    def _errors_in(self, place: ipywidgets.HTML, meanwhile: str = "") -> Iterator[None]:
        """Say in `place` what went wrong, so that nothing is hidden in a log; `meanwhile` is said until it is done."""
        place.value = markup.line(meanwhile, "busy") if meanwhile else ""
        try:
            yield
        except EXPECTED as error:
            place.value = markup.problem(str(error))
        except Exception:
            place.value = markup.problem(traceback.format_exc())
        else:
            if meanwhile:
                place.value = ""


def _button(text: str, act: Callable[[], None], tooltip: str) -> ipywidgets.Button:
    made = ipywidgets.Button(description=text, tooltip=tooltip, layout=ipywidgets.Layout(width="auto"))
    made.on_click(lambda _: act())
    return made


def _cards(cards: tuple[Card, ...], pick: Callable[[Mapping[str, str]], None]) -> ipywidgets.Widget:
    """Lay out the cards of one list; those with ids have a button."""
    held = []
    for card in cards:
        parts: list[ipywidgets.Widget] = [ipywidgets.HTML(markup.card(card))]
        if card.ids:
            what = ", ".join(card.ids.values())
            parts.append(_button("Pick", partial(pick, card.ids), f"Enter {what} in the forms"))
        held.append(ipywidgets.VBox(parts, layout=ipywidgets.Layout(align_items="flex-start")))
    return grid(held, "repeat(auto-fill, minmax(260px, 1fr))", "8px")
