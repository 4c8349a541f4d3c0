"""Text of a foreign catalog made safe to show and to prompt with: one line, no markup, no control characters."""

import re
from functools import lru_cache
from typing import Any, Final

NOTHING: Final = frozenset(["", *"- -- ? n/a na nan nil none null undefined unknown #n/a [] {}".split()])
"""What a file writes, in lower case, where it has no value."""
MARKUP, ENCODING, CONTROL, MARKER, LONG = (
    "HTML removed",
    "mixed encodings mended",
    "control characters removed",
    "chat markers neutralised",
    "text cut to its limit",
)
"""Names of repairs."""
_LONGEST: Final = max(map(len, NOTHING))
_SOUND = re.compile("[\t\n -~\u00a0-\u00ac\u00ae-\u00ff–—•…™€′″]*")
"""Letters and signs that ftfy leaves as they are, unless they are signs of a mixed encoding."""
_MARKUP = re.compile(r"&#?[0-9A-Za-z]{1,24};|</?[a-zA-Z!][^<>]*>")
_TAG = re.compile(r"</?[a-zA-Z!][^<>]*>")
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]"
)
_BRACKETED = re.compile(r"\[(/?(?:INST|SYS|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS))\]", re.IGNORECASE)
_MARKER = re.compile(rf"<[|｜]|[|｜]>|<<|</?\w+_\w+>|{_BRACKETED.pattern}", re.IGNORECASE)
_INERT = str.maketrans("<>", "‹›")
_BLOCK = re.compile(r"</?(?:br|div|h[1-4]|li|ol|p|t[dhr]|ul)\b[^<>]*>", re.IGNORECASE)
"""Tags that part words; others stand within them."""
_UNSEEN = re.compile(r"<(script|style)\b[^<>]*>.*?(?:</\1\b[^<>]*>|$)", re.IGNORECASE | re.DOTALL)


def is_nothing(value: Any) -> bool:
    """Tell whether a value stands for none: null, NaN, an empty list, "N/A", "None"."""
    if value is None or value != value:
        return True
    if isinstance(value, str):
        said = value.strip()
        return len(said) <= _LONGEST and said.lower() in NOTHING
    return isinstance(value, list | tuple | dict) and not value


def clean(value: Any, limit: int = 2_000) -> tuple[str, tuple[str, ...]]:
    """Return `value` as one safe line of at most `limit` characters, and the names of the repairs that it took.

    No angle bracket is left, so that nothing in it can be a tag in a notebook or a special token in a prompt.
    """
    if not isinstance(value, str):
        value = "" if is_nothing(value) else str(value)
    if (
        len(value) <= limit
        and value.isascii()
        and value.isprintable()
        and not ("<" in value or ">" in value or "&" in value or "[" in value)
    ):
        return (" ".join(value.split()) if "  " in value else value.strip()), ()
    return _clean(value[: 8 * limit], limit)


@lru_cache(maxsize=16_384)
def _clean(raw: str, limit: int) -> tuple[str, tuple[str, ...]]:
    text, repairs = _mended(raw)
    shown = without_markup(text)
    line = " ".join(shown.split())
    held = printable(line)
    whole = " ".join(inert(held).split())
    if len(whole) > limit:
        whole = whole[:limit].rsplit(" ", 1)[0]
        repairs.append(LONG)
    repairs += [MARKUP] * (shown != text) + [CONTROL] * (held != line)
    if _MARKER.search(text) or _MARKER.search(held):
        repairs.append(MARKER)
    return whole, tuple(repairs)


def _mended(raw: str) -> tuple[str, list[str]]:
    """Return text with its encoding, quotes and widths mended, and the repair where letters changed."""
    import ftfy
    from ftfy.badness import is_bad

    if _SOUND.fullmatch(raw) and (
        raw.isascii() or not is_bad(raw)
    ):  # takes a tenth of the time of mending it
        return raw, []
    whole = raw.encode("utf-8", "replace").decode("utf-8")  # without lone surrogates
    text, steps = ftfy.fix_and_explain(whole, unescape_html=False)
    moved = whole != raw or "\ufffd" in text or any(step.action != "apply" for step in steps or ())
    return text, [ENCODING] * moved


def without_markup(text: str) -> str:
    """Return what a browser would show of a piece of HTML; nothing else of it is made safe."""
    from ftfy.fixes import unescape_html

    for _ in range(3):  # entities may hide another layer
        if not ("<" in text or "&" in text) or not _MARKUP.search(text):
            return text
        text = unescape_html(_TAG.sub("", _BLOCK.sub("\n", _UNSEEN.sub("", text))))
    return _TAG.sub(" ", text)


def inert(text: str) -> str:
    """Return text in which nothing is a tag or a chat template's token."""
    if "<" in text or ">" in text:
        text = text.translate(_INERT)
    return _BRACKETED.sub(r"(\1)", text) if "[" in text else text


def printable(name: str) -> str:
    """Return text without what no terminal should get and no file can hold."""
    return name if name.isascii() and name.isprintable() else _CONTROL.sub("", name)


def inert_cell(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
