"""Values as people read them: numbers with units, times, and names that cannot deceive."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup, escape

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
UNKNOWN = "\N{EN DASH}"
NO_TIMESTAMP = -1


def number(value: int | float | None) -> str:
    """With commas between thousands; a dash for what is not known."""
    if value is None:
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def size(value: int | float | None) -> str:
    """Bytes in the unit that leaves one to four digits before the point."""
    if value is None:
        return UNKNOWN
    amount = float(value)
    for unit in UNITS:
        if abs(amount) < 1024 or unit == UNITS[-1]:
            break
        amount /= 1024
    digits = 0 if unit == "B" or amount >= 100 else 1
    return f"{amount:,.{digits}f} {unit}"


def duration(milliseconds: int | None) -> str:
    """The two largest units of a duration, such as "2 h 5 min"."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1000:
        return f"{max(milliseconds, 0)} ms"
    left, parts = milliseconds // 1000, []
    for name, seconds in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def iso_time(timestamp_ms: int) -> str | None:
    """ISO 8601 in UTC; None for what no calendar has."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time(timestamp_ms: int | None) -> Markup:
    """A `<time>` in UTC, which the script shows in the viewer's zone if that is preferred."""
    if timestamp_ms is None or timestamp_ms == NO_TIMESTAMP:
        return Markup('<span class="muted">none</span>')
    iso = iso_time(timestamp_ms)
    if iso is None:
        return Markup("<span>{} ms</span>").format(timestamp_ms)
    day, _, moment = iso.removesuffix("Z").partition("T")
    return Markup('<time datetime="{}"><span class="day">{} </span>{}</time>').format(
        iso, day, moment
    )


def visible(value: object) -> Markup:
    r"""Escaped text of strangers: whatever is not printable is shown as `\xNN` or `\uNNNN`, set
    apart, so that a name with control bytes or right-to-left marks is read as what it is. HTML that
    was made here stays as it is."""
    if isinstance(value, Markup):
        return value
    text = str(value)
    if text.isprintable():
        return escape(text)
    return _marked(text, "")


def block(text: str) -> Markup:
    """The same for text of several lines, whose line feeds and tabs stay."""
    return _marked(text, "\n\t")


def _marked(text: str, kept: str) -> Markup:
    parts: list[Markup] = []
    begin = 0
    for index, each in enumerate(text):
        if each.isprintable() or each in kept:
            continue
        parts.append(escape(text[begin:index]))
        code = each.encode("unicode_escape").decode("ascii")
        parts.append(Markup('<span class="unprintable">{}</span>').format(code))
        begin = index + 1
    parts.append(escape(text[begin:]))
    return Markup("").join(parts)


def shortened(text: str, length: int = 200) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
