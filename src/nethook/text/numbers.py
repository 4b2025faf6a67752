"""Numbers as people read them."""

from __future__ import annotations

import math
from numbers import Integral, Real


def number(value: float, digits: int = 3) -> str:
    """A number for a page or a figure: `0.0123`, `1,230`, `4.5e−7`; as many digits as matter."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e6:
        whole = max(0, digits - 1 - math.floor(math.log10(size)))
        text = f"{value:,.{whole}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        text = f"{mantissa}e{int(power)}"
    return text.replace("-", "−")


def ascii_number(value: object, digits: int = 3) -> str:
    """A number for a message: `0.0123`, `1.23e+03`, and whole ones in full, `1,230`.

    Unlike `number` it can be copied into a program: it has no typographic minus. What is not a
    number is shown as it is.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    return f"{value:,}" if isinstance(value, Integral) else f"{value:.{digits}g}"


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`, `12,345 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Bytes in the unit that a person would choose."""
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 999.5 or unit == "GB":  # from there on it would be shown as 1,000
            return f"{value:,.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def share(value: float) -> str:
    """A share as percent: `12 %`, `0.3 %`, `< 0.01 %`."""
    if not math.isfinite(value):
        return "NaN"
    percent = 100 * value
    if 0 < percent < 0.01:
        return "< 0.01 %"
    return f"{number(percent, 2 if percent < 10 else 3)} %"


def steps(value: float) -> str:
    """A number of steps."""
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    """A length of time in the units that a person would choose."""
    if not math.isfinite(value) or value < 0:
        return "?"
    if value < 60:
        return f"{number(value, 2)} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"


def power_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks of an axis of decimal logarithms: places, and what they say."""
    first, last = math.floor(low), math.ceil(high)
    every = max(1, math.ceil((last - first) / 8))
    places = [float(power) for power in range(first, last + 1, every)]
    return places, [power_of_ten(int(power)) for power in places]


def power_of_ten(power: int) -> str:
    """`0.01`, `1`, `1,000`, `1e−7`."""
    return number(10.0**power)


def log_ticks(low: float, high: float, most: int = 5) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis from `low` to `high` (both positive): values, and what they say.

    Powers of ten, thinned to `most`; where there are fewer than two of them, 1-2-5 between.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = [10.0**power for power in range(first, last + 1)]
    inside = [value for value in powers if low <= value <= high]
    if len(inside) >= 3:
        every = math.ceil(len(inside) / most)
        ticks = inside[::-1][::every][::-1]
    else:
        fine = [digit * power for power in powers for digit in (1, 2, 5)]
        ticks = [value for value in fine if low * 0.999 <= value <= high * 1.001]
        ticks = ticks[:: max(1, math.ceil(len(ticks) / (most + 2)))]
        if len(ticks) < 2:  # less than a factor of two or so: equal steps serve
            ticks = _round_steps(low, high)
            ticks = ticks[:: max(1, math.ceil(len(ticks) / (most + 1)))]
    return ticks, [number(value) for value in ticks]


def _round_steps(low: float, high: float) -> list[float]:
    """Two to five values between, a round number apart."""
    if not high > low:
        return [low]
    size = 10.0 ** math.floor(math.log10(high - low))
    step = next(
        (fraction * size for fraction in (1, 0.5, 0.2) if (high - low) / (fraction * size) >= 2),
        size,
    )
    first = math.ceil(low / step)
    multiples = [step * multiple for multiple in range(first, math.floor(high / step) + 1)]
    return [value for value in multiples if value > 0][:6] or [low, high]
