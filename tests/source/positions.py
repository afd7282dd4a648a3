"""Change the position that a connector has stored."""

import httpx

from cdc.state.pipeline import Pipeline


def mark_unfinished(pipeline: Pipeline) -> None:
    """Set the position that the connector stores in the middle of its first snapshot."""
    url = f"{pipeline.endpoints.connect}/connectors/{pipeline.name}/offsets"
    (entry,) = httpx.get(url).raise_for_status().json()["offsets"]
    entry["offset"] |= {"snapshot": "INITIAL", "snapshot_completed": False}
    httpx.patch(url, json={"offsets": [entry]}).raise_for_status()
