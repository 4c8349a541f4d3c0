"""Text of a foreign catalog made safe to show and to prompt with: one line, no markup, no control characters."""

import html
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
_ACTIVE = re.compile(
    r"&[#0-9A-Za-z]|\[/?(?:INST|SYS|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\]", re.IGNORECASE
)
"""What needs repair in plain ASCII: an entity, or what may be one, and chat markers."""
_SOUND = re.compile("[\t\n -~\u00a0-\u00ac\u00ae-\u00ff–—•…™€′″]*")
"""Letters and signs that ftfy leaves as they are, unless they are signs of a mixed encoding."""
_ENTITY = re.compile(r"&#?[0-9A-Za-z]{1,24};")
_TAG = re.compile(r"</?[a-zA-Z!][^<>]*>")
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]"
)
_HIDDEN = re.compile("[\ufffc\ufffd]")
"""Those of them that count as printable."""
_MARKER = re.compile(
    r"<[|｜/]|[|｜]>|\[/?(?:INST|SYS|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\]|</?\w+>", re.IGNORECASE
)
_SIGN = re.compile(r"[<>\[]")
"""One of these is in every chat marker."""
_INERT = str.maketrans("<>", "‹›")
_BRACKETED = re.compile(r"\[(/?(?:INST|SYS|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS))\]", re.IGNORECASE)
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
        and not ("<" in value or ">" in value)
        and not (("&" in value or "[" in value) and _ACTIVE.search(value))
    ):
        return (" ".join(value.split()) if "  " in value else value.strip()), ()
    return _clean(value[: 8 * limit], limit)


@lru_cache(maxsize=16_384)
def _clean(raw: str, limit: int) -> tuple[str, tuple[str, ...]]:
    repairs: list[str] = []
    text, moved = (raw, False) if _is_sound(raw) else _mended(raw)
    if moved:
        repairs.append(ENCODING)
    if "<" in text and _TAG.search(text):
        text = _shown(text)
        repairs.append(MARKUP)
    text = " ".join(text.split())
    held = text if text.isprintable() and not _HIDDEN.search(text) else _CONTROL.sub("", text)
    if held != text:
        repairs.append(CONTROL)
    text = held
    if (_SIGN.search(raw) and _MARKER.search(raw) and _special(raw)) or (
        _SIGN.search(text) and _MARKER.search(text)
    ):
        repairs.append(MARKER)
    text = " ".join(inert(text).split())
    if len(text) > limit:
        text = text[:limit].rsplit(" ", 1)[0]
        repairs.append(LONG)
    return text, tuple(repairs)


def _special(raw: str) -> bool:
    """Tell whether a piece of raw text looks like a chat template's token rather than like HTML."""
    return any(
        match.group()[-1] in "|｜" or match.group()[0] in "|｜[" or "_" in match.group()
        for match in _MARKER.finditer(raw)
    )


def _mended(raw: str) -> tuple[str, bool]:
    """Return text with its encoding, quotes and widths mended, and whether letters changed, beyond entities."""
    import ftfy

    one_line = not ("\n" in raw or "&" in raw)  # ftfy mends each line by itself, after its entities
    try:
        plain = ftfy.fix_encoding(raw) if one_line else raw  # asked for once, for it takes most of the time
        text = ftfy.fix_text(plain)
    except (UnicodeError, ValueError):  # lone surrogates, say
        plain, text = raw, raw.encode("utf-8", "replace").decode("utf-8")
    if "\ufffd" in text or plain != raw:
        return text, True
    unescaped = html.unescape(raw)
    return text, not one_line and ftfy.fix_encoding(unescaped) != unescaped


def _is_sound(raw: str) -> bool:
    """Tell whether ftfy would leave text as it is, which takes a tenth of the time of asking it to mend it.

    Entities are the parser's where there are tags in the only line.
    """
    from ftfy.badness import is_bad

    if not _SOUND.fullmatch(raw) or (_ENTITY.search(raw) and ("<" not in raw or "\n" in raw)):
        return False
    return raw.isascii() or not ("\n" in raw or is_bad(raw))


def _shown(text: str) -> str:
    """Return what a browser would show of a piece of HTML."""
    for _ in range(3):  # entities may hide another layer
        text = html.unescape(_TAG.sub("", _BLOCK.sub("\n", _UNSEEN.sub("", text))))
        if not _TAG.search(text):
            break
    return _TAG.sub(" ", text)


def inert(text: str) -> str:
    """Return text in which nothing is a tag or a chat template's token."""
    if "<" in text or ">" in text:
        text = text.translate(_INERT)
    return _BRACKETED.sub(r"(\1)", text) if "[" in text else text


def is_inert(text: str) -> bool:
    """Tell whether `inert` would leave the text as it is."""
    return "<" not in text and ">" not in text and not _BRACKETED.search(text)


def without_markup(said: str) -> tuple[str, tuple[str, ...]]:
    """Return text with its entities resolved and without its tags, and the repair where there were any; nothing else of
    it is made safe."""
    plain = html.unescape(said)
    shown = _TAG.sub(" ", plain)
    return shown, (MARKUP,) * (shown != plain)


def printable(name: str) -> str:
    """Return a column's name without what no terminal should get and no file can hold."""
    return name if name.isprintable() else _CONTROL.sub("", name)


def inert_cell(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
