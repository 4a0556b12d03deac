"""How a number is written: four significant digits, a true minus sign.

>>> write(-0.051234), write(float("-inf")), write(123456.0), write(2)
('−0.05123', '−∞', '1.235e5', '2')
"""

import math


def write(value: float, digits: int = 4) -> str:
    """Write one number for reading (not for reading back); NaN, ±∞ and huge values included."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0 and not 1e-4 <= abs(value) < 1e5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    else:
        text = f"{value:.{digits}g}"
        if "e" in text:  # 12345 with four digits
            text = f"{value:.0f}"
        elif "." in text:
            text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", "−")


def factor(value: float) -> str:
    """Write a number as a factor: a negative one stands in brackets."""
    text = write(value)
    return f"({text})" if text.startswith("−") else text
