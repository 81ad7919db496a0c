"""Small HTML tables for notebooks, in the notebook's own colours."""

from collections.abc import Iterable
from html import escape

CELL = "text-align:left;vertical-align:top;padding:0 .8em 0 0"


def html_card(
    title: str, rows: Iterable[tuple[str, object]] = (), *, text: str = "", folded: Iterable[str] = ()
) -> str:
    """A title, a sentence, a table of two columns and a list that unfolds; everything is escaped.

    Parameters
    ----------
    title : str
    rows : iterable of (str, object)
    text : str
        Below the title.
    folded : iterable of str
        Assumptions, shown when asked for.

    Examples
    --------
    >>> html_card("Window", text="a < b")
    '<div><strong>Window</strong><p>a &lt; b</p></div>'
    """
    parts = [f"<strong>{escape(title)}</strong>"]
    if text:
        parts.append(f"<p>{escape(text)}</p>")
    lines = [
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(str(value))}</td></tr>'
        for name, value in rows
    ]
    if lines:
        parts.append(f"<table>{''.join(lines)}</table>")
    points = "".join(f"<li>{escape(each)}</li>" for each in folded)
    if points:
        parts.append(f"<details><summary>It is assumed that</summary><ul>{points}</ul></details>")
    return f"<div>{''.join(parts)}</div>"


def html_text(title: str, text: object) -> str:
    """A title and lines of text, escaped."""
    return f"<div><strong>{escape(title)}</strong><pre>{escape(str(text))}</pre></div>"
