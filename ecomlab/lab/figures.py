"""Saved figures: PDF for a paper (byte-identical for equal data), PNG for the screen, JSON for provenance."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.files import read_json, replacing, write_json, write_text
from ecomlab.lab.paths import resolve, shown
from ecomlab.lab.provenance import provenance
from ecomlab.style import current

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Caption:
    """The caption below a figure, and the alternative text for readers who cannot see it."""

    text: str
    alternative: str
    column: str = ""
    """Caption of the column-wide version, if that shows other panels."""


def save(
    figure: "Figure",
    name: str,
    *,
    out: str | Path = "figures",
    parameters: Mapping[str, Any],
    inputs: Iterable[str | Path] = (),
    catalog: str | None = None,
    data: Mapping[str, Any] | None = None,
    caption: Caption | None = None,
    numbers: "Mapping[str, pd.DataFrame] | None" = None,
) -> list[Path]:
    """Write `out`/`name`.pdf, .png and .json, with a caption also .tex and .txt (alternative text), and each table of
    `numbers` as `name`.LABEL.csv; return the paths. A table's index is written if it has a name.

    The PDF holds no date, commit or parameter, so that equal data and libraries give equal bytes. Commit and parameters
    are in the JSON, with the SHA-256 of every file in `inputs` and, as `data`, the provenance of those. Drawn again at
    another commit, an equal figure keeps its JSON, unless that names a dirty one.
    """
    import matplotlib

    folder = resolve(out)
    pdf, png, sidecar, tex, alt = (folder / f"{name}.{kind}" for kind in ("pdf", "png", "json", "tex", "txt"))
    try:
        before = pdf.read_bytes() if pdf.is_file() else b""
        with matplotlib.rc_context(
            {"pdf.fonttype": 42, "svg.hashsalt": name}
        ):  # editable text; no random ids
            with replacing(pdf) as draft:
                figure.savefig(draft, format="pdf", metadata={"CreationDate": None})
            with replacing(png) as draft:
                figure.savefig(draft, format="png", metadata={"Software": None}, dpi=200)
        if str(parameters.get("look")).endswith(".toml"):  # its contents, for the file may change
            parameters = {**parameters, "look": current().model_dump(mode="json")}
        found = provenance(parameters, catalog=catalog, inputs=[resolve(p) for p in inputs], data=data)
        record, known = {"figure": name, **found}, read_json(sidecar) or {}
        same = pdf.read_bytes() == before and {**record, "commit": known.get("commit")} == known
        if not same or str(known["commit"]).endswith("-dirty"):
            write_json(sidecar, record)
        if caption is not None:
            write_text(tex, f"{as_latex(caption.text)}\n")
            write_text(alt, f"{caption.alternative}\n")
        csvs = {folder / f"{name}.{label}.csv": table for label, table in (numbers or {}).items()}
        for path, table in csvs.items():
            write_text(path, table.to_csv(index=table.index.names[0] is not None))
    except OSError as e:
        raise OSError(f"cannot write the figure to {shown(folder)}/: {e.strerror}; give another `out`") from e
    return [pdf, png, sidecar, *([tex, alt] if caption else []), *csvs]


def save_widths(
    page: "Figure",
    column: "Figure",
    name: str,
    *,
    caption: Caption | None = None,
    numbers: "Mapping[str, pd.DataFrame] | None" = None,
    **more: Any,
) -> list[Path]:
    """Save a figure as wide as a page as `name`, and its narrow version as `name`_column, both as `save` does. They
    share the tables of `numbers`."""
    narrow = replace(caption, text=caption.column or caption.text) if caption else None
    return [
        *save(page, name, caption=caption, numbers=numbers, **more),
        *save(column, f"{name}_column", caption=narrow, **more),
    ]


def as_latex(text: str) -> str:
    """Write plain text as LaTeX: what has a meaning there is escaped."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    plain = {"–": "--", "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "…": r"\ldots{}"}
    known = {**special, **{mark: f"\\{mark}" for mark in "&%$#_{}"}, **plain}
    return "".join(known.get(mark, mark) for mark in text)
