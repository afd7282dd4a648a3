"""The common base of the configuration file's sections."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of the configuration file.

    The docstrings of sections and keys become the reference, docs/reference/configuration.md.
    """

    # A validation error must not repeat its input, which may be a secret.
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )
