"""Texts from the templates beside this module, by Jinja."""

import json
from typing import Any

import jinja2


def filled(template: str, **values: Any) -> str:
    """The text of a template with values in it, which are escaped where it is HTML. `quoted` writes
    one as JSON does, and TOML, too.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opendp_bayes_office.report"),
        autoescape=jinja2.select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.get_template(template).render(values)
