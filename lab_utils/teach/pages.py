"""Pages from templates. What people wrote is escaped."""

from pathlib import Path
from typing import Any

import jinja2

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """A page as HTML, which needs nothing but itself."""
    return _TEMPLATES.get_template(template).render(**values)
